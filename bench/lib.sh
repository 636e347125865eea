# shellcheck shell=bash
#
# lib.sh
#		What every benchmark here needs: a private PostgreSQL cluster, a private
#		nginx that answers 200, one place that cleans both up, and a few words to
#		talk to them.  Source it; it does nothing until bench_init is called.
#
# Nothing outside one temporary directory is touched: the cluster listens on a
# unix socket in it only, nginx on one loopback port below the ephemeral range.
# PostgreSQL refuses to run as root; then the servers run as BENCH_USER.
#
# Environment: PG_CONFIG (pg_config of the server under test), BENCH_USER
# (default postgres, used only by root), TMPDIR, KEEP=1 (keep the directory).

set -euo pipefail

PG_CONFIG=${PG_CONFIG:-pg_config}
BENCH_USER=${BENCH_USER:-postgres}
BENCH_DB=bench
BENCH_DIR=
BENCH_PORT=
BENCH_NGINX_PID=
BENCH_PGDATA=
PG_BIN=

die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

note()
{
	printf '%s\n' "$*" >&2
}

# The header comment of the calling script is its help text.
bench_help()
{
	awk 'NR == 1 { next } /^#/ { sub(/^# ?/, ""); print; next } { exit }' "$0"
}

# Run a command as the user the servers run as, with all the descriptors that
# are allowed: changing the user resets the soft limit, and one descriptor per
# request in flight is needed on each side.
as_server()
{
	# shellcheck disable=SC2016
	local raise='cd "$0" && ulimit -n "$(ulimit -Hn)" && exec "$@"'

	if [ "$(id -u)" -eq 0 ]; then
		runuser -u "$BENCH_USER" -- bash -c "$raise" "$BENCH_DIR" "$@"
	else
		bash -c "$raise" "$BENCH_DIR" "$@"
	fi
}

# Create the directory and arrange for the clean-up.
bench_init()
{
	command -v "$PG_CONFIG" >/dev/null || die "no $PG_CONFIG; set PG_CONFIG to the pg_config of the server to measure"
	PG_BIN=$("$PG_CONFIG" --bindir)
	[ -x "$PG_BIN/initdb" ] || die "no initdb in $PG_BIN; install the PostgreSQL server package"
	ulimit -n "$(ulimit -Hn)"
	unset PGHOST PGHOSTADDR PGPORT PGDATABASE PGUSER PGOPTIONS PGSERVICE PGDATA
	BENCH_DIR=$(mktemp -d "${TMPDIR:-/tmp}/reconcile-bench.XXXXXX")
	if [ "$(id -u)" -eq 0 ]; then
		chown "$BENCH_USER" "$BENCH_DIR"
	fi
	trap bench_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

bench_cleanup()
{
	local status=$?

	trap - EXIT INT TERM
	if [ -n "$BENCH_NGINX_PID" ]; then
		kill "$BENCH_NGINX_PID" 2>/dev/null || true
	fi
	if [ -n "$BENCH_PGDATA" ] && [ -f "$BENCH_PGDATA/postmaster.pid" ]; then
		as_server "$PG_BIN/pg_ctl" -D "$BENCH_PGDATA" -m immediate -w stop >/dev/null 2>&1 || true
	fi
	if [ "$status" -ne 0 ] && [ -n "$BENCH_PGDATA" ] && [ -f "$BENCH_PGDATA/server.log" ]; then
		note "--- end of the server's log"
		tail -n 20 "$BENCH_PGDATA/server.log" >&2
	fi
	if [ "${KEEP:-0}" = 1 ]; then
		note "kept: $BENCH_DIR"
	elif [ -n "$BENCH_DIR" ]; then
		rm -rf "$BENCH_DIR"
	fi
	exit "$status"
}

# Below the ephemeral range, so that no outgoing connection can hold it.
bench_free_port()
{
	local port

	for port in $(shuf -i 20000-32000 -n 50); do
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo "$port"
			return
		fi
	done
	die "no free port found"
}

# bench_cluster_start LIBRARIES [CONFIG LINE ...]
# Durable defaults stay as they are (fsync, synchronous_commit, full_page_writes).
bench_cluster_start()
{
	local libraries=$1

	shift
	BENCH_PGDATA=$BENCH_DIR/data
	as_server mkdir -m 0700 "$BENCH_DIR/arming"
	as_server "$PG_BIN/initdb" -D "$BENCH_PGDATA" -U postgres --auth=trust --encoding=UTF8 --locale=C >/dev/null
	{
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$BENCH_DIR'"
		echo "shared_preload_libraries = '$libraries'"
		echo "max_connections = 100"
		echo "shared_buffers = 512MB"
		echo "max_wal_size = 8GB"
		echo "logging_collector = off"
		printf '%s\n' "$@"
	} | as_server tee -a "$BENCH_PGDATA/postgresql.conf" >/dev/null
	as_server "$PG_BIN/pg_ctl" -D "$BENCH_PGDATA" -l "$BENCH_PGDATA/server.log" -w -t 60 start >/dev/null \
		|| die "the private server did not start"
	"$PG_BIN/createdb" -h "$BENCH_DIR" -U postgres "$BENCH_DB"
}

# sql STATEMENT...: each as its own statement; bare, unaligned output.
sql()
{
	local args=() statement

	for statement in "$@"; do
		args+=(-c "$statement")
	done
	"$PG_BIN/psql" -X -A -t -q -v ON_ERROR_STOP=1 -h "$BENCH_DIR" -U postgres -d "$BENCH_DB" "${args[@]}"
}

# sql_file [psql options] < script
sql_file()
{
	"$PG_BIN/psql" -X -A -t -q -v ON_ERROR_STOP=1 -h "$BENCH_DIR" -U postgres -d "$BENCH_DB" "$@" -f -
}

# extension_available NAME: can this server create it?
extension_available()
{
	[ -n "$("$PG_BIN/psql" -X -A -t -q -h "$BENCH_DIR" -U postgres -d "$BENCH_DB" \
		-c "SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = '$1'")" ]
}

# library_installed NAME: asked before the server runs, to preload it or not.
library_installed()
{
	[ -e "$("$PG_CONFIG" --pkglibdir)/$1.so" ] && [ -e "$("$PG_CONFIG" --sharedir)/extension/$1.control" ]
}

# The settings every benchmark of the engine uses, one a line.
bench_reconcile_settings()
{
	echo "action_reconcile.databases = '*'"
	echo "action_reconcile.arming_dir = '$BENCH_DIR/arming'"
}

# CREATE EXTENSION, arm, and one provider with one operation on the loopback nginx.
bench_reconcile_create()
{
	library_installed action_reconcile || die "action_reconcile is not installed for this server: make && make install"
	sql "CREATE EXTENSION action_reconcile CASCADE" \
		"SELECT reconcile.arm('benchmark on a throwaway cluster')" >/dev/null
	sql "INSERT INTO reconcile.provider (provider, base_url, max_in_flight, allow_http, allow_private_addresses)
		 VALUES ('loopback', 'http://127.0.0.1:${BENCH_PORT:-1}', ${1:-64}, true, true)" \
		"INSERT INTO reconcile.operation (operation, provider, method, path, headers)
		 VALUES ('post', 'loopback', 'POST', '/', '{\"Content-Type\": \"application/json\"}')"
}

# bench_copy_finished COUNT: grow the tables by copies of one finished action, its
# attempt and its history.  The guards are switched off for it, which only the
# owner of a throwaway cluster may do: the copies' hash chains are not valid.
bench_copy_finished()
{
	sql_file -v "copies=$1" <<-'SQL'
		BEGIN;
		ALTER TABLE reconcile.action DISABLE TRIGGER ALL;
		ALTER TABLE reconcile.attempt DISABLE TRIGGER ALL;
		ALTER TABLE reconcile.history DISABLE TRIGGER ALL;
		CREATE TEMP TABLE copy ON COMMIT DROP AS
			SELECT g, reconcile.new_action_id() AS action_id, gen_random_uuid() AS dispatch_id
			  FROM generate_series(1, :copies) g;
		DO $$
		DECLARE
			template uuid := (SELECT action_id FROM reconcile.action WHERE state = 'succeeded' LIMIT 1);
			part text;
		BEGIN
			IF template IS NULL THEN
				RAISE EXCEPTION 'there is no finished action to copy';
			END IF;
			FOREACH part IN ARRAY ARRAY['action', 'attempt', 'history'] LOOP
				-- Every column as in the template, except the names.
				EXECUTE (SELECT format('INSERT INTO reconcile.%I (%s) SELECT %s FROM reconcile.%I t, copy c WHERE t.action_id = %L',
						part, string_agg(quote_ident(attname), ', ' ORDER BY attnum),
						string_agg(CASE attname
							WHEN 'action_id' THEN 'c.action_id'
							WHEN 'client_reference' THEN 'c.action_id::text'
							WHEN 'dispatch_id' THEN 'c.dispatch_id'
							ELSE 't.' || quote_ident(attname) END, ', ' ORDER BY attnum),
						part, template)
					FROM pg_attribute
				   WHERE attrelid = format('reconcile.%I', part)::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '');
			END LOOP;
		END $$;
		ALTER TABLE reconcile.action ENABLE TRIGGER ALL;
		ALTER TABLE reconcile.attempt ENABLE TRIGGER ALL;
		ALTER TABLE reconcile.history ENABLE TRIGGER ALL;
		COMMIT;
		VACUUM (ANALYZE) reconcile.action, reconcile.attempt, reconcile.history;
		CHECKPOINT;
	SQL
}

# bench_finish COUNT: queue so many actions and wait until nothing is left to do.
bench_finish()
{
	sql "INSERT INTO reconcile.action (operation, payload)
		 SELECT 'post', jsonb_build_object('n', g, 'at', clock_timestamp()) FROM generate_series(1, $1) g"
	wait_for 600 "SELECT NOT EXISTS (SELECT FROM reconcile.action WHERE state IN ('planned', 'submitted', 'reconciling'))"
}

# wait_for SECONDS QUERY: until it returns t.
wait_for()
{
	local deadline=$((SECONDS + $1))

	until [ "$(sql "$2")" = t ]; do
		[ "$SECONDS" -lt "$deadline" ] || die "still not true after $1 s: $2"
		sleep 0.1
	done
}

# The loopback peer. keepalive stays at nginx's defaults; only limits that would
# make it refuse connections are raised.
bench_nginx_start()
{
	local dir=$BENCH_DIR/nginx nginx

	nginx=$(command -v nginx || echo /usr/sbin/nginx)
	[ -x "$nginx" ] || die "nginx is not installed"
	BENCH_PORT=$(bench_free_port)
	as_server mkdir -p "$dir/tmp"
	as_server tee "$dir/nginx.conf" >/dev/null <<-CONF
		worker_processes 1;
		worker_rlimit_nofile $(ulimit -n);
		daemon off;
		pid $dir/nginx.pid;
		error_log $dir/error.log error;
		events { worker_connections $(($(ulimit -n) - 200)); }
		http {
			access_log off;
			client_body_temp_path $dir/tmp;
			proxy_temp_path $dir/tmp;
			fastcgi_temp_path $dir/tmp;
			uwsgi_temp_path $dir/tmp;
			scgi_temp_path $dir/tmp;
			server {
				listen 127.0.0.1:$BENCH_PORT backlog=65535;
				location / { return 200; }
				location = /stub_status { stub_status; }
			}
		}
	CONF
	as_server "$nginx" -p "$dir" -e "$dir/error.log" -c "$dir/nginx.conf" 2>"$dir/stderr" &
	for _ in $(seq 100); do
		if [ -s "$dir/nginx.pid" ] && (exec 3<>"/dev/tcp/127.0.0.1/$BENCH_PORT") 2>/dev/null; then
			BENCH_NGINX_PID=$(cat "$dir/nginx.pid")
			return
		fi
		sleep 0.1
	done
	cat "$dir/stderr" "$dir/error.log" >&2
	die "nginx did not start"
}

# Requests nginx has answered so far: the peer's own count of what was sent to
# it, so that a benchmark can also see a repetition.  The question itself counts.
nginx_requests()
{
	local line

	exec 3<>"/dev/tcp/127.0.0.1/$BENCH_PORT"
	printf 'GET /stub_status HTTP/1.0\r\n\r\n' >&3
	line=$(awk '/^ *[0-9]+ [0-9]+ [0-9]+/ { print $3 }' <&3)
	exec 3>&-
	echo "$line"
}

# median NUMBER...
median()
{
	printf '%s\n' "$@" | sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# calc FORMAT EXPRESSION
calc()
{
	awk "BEGIN { printf \"$1\", ($2) }"
}

bench_machine()
{
	echo "machine: $(nproc) CPUs, $(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), $("$PG_BIN/postgres" --version)," \
		"$(curl-config --version 2>/dev/null || echo libcurl unknown), $(nginx -v 2>&1 | sed 's/.*: //'), open files $(ulimit -n)"
	echo "durability: fsync=$(sql 'SHOW fsync') synchronous_commit=$(sql 'SHOW synchronous_commit') full_page_writes=$(sql 'SHOW full_page_writes')"
}
