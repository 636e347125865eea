// Starts the mock of Stripe's API on a loopback port and prints the port.
// It ends when its standard input closes.  Usage: node server.js FOLDER
"use strict";

const http = require("http");
const path = require("path");

const folder = path.join(path.resolve(process.argv[2]), "node_modules");
require(path.join(folder, "loglevel")).setLevel("warn");
const app = require(path.join(folder, "stripe-stateful-mock")).createExpressApp();

function listen(tries) {
    const port = 20000 + Math.floor(Math.random() * 12000);
    const server = http.createServer(app);
    server.on("error", (error) => {
        if (tries === 0) {
            throw error;
        }
        listen(tries - 1);
    });
    server.listen(port, "127.0.0.1", () => console.log(port));
}

process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
listen(100);
