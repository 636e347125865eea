# Shell functions for ci/, demo/ and test/; to be sourced, by bash.
#
# PostgreSQL refuses to run as root, so servers run as an unprivileged user:
# the one who calls, or postgres when root calls.

# Sets server_user to the user that servers run as.
find_server_user()
{
	if [ "$(id -u)" -ne 0 ]; then
		server_user=$(id -un)
	elif id postgres >/dev/null 2>&1; then
		server_user=postgres
	else
		echo "${0##*/}: there is no user postgres; run ci/setup first" >&2
		return 1
	fi
}

# Runs a command as that user, in an environment of its own: no variable of the
# caller may lead a client to another server.
# Uses: server_user, server_path, server_home, server_env (more variables), and
# server_dir, which that user can enter (the caller's directory may be closed).
as_server_user()
{
	(become_server_user "$@")
}

# The same, in place of the current shell: started as "become_server_user … &"
# the command's process is $! itself, so that its id can be used to end it.
# setpriv changes the user in this very process; runuser would stay in between.
become_server_user()
{
	local environment=("PATH=$server_path" "HOME=$server_home" "LC_ALL=C.UTF-8" "TZ=UTC"
		"TERM=${TERM:-dumb}" "USER=$server_user" "LOGNAME=$server_user" "${server_env[@]}")
	trap - EXIT HUP INT TERM
	cd "$server_dir"
	if [ "$(id -u)" -eq 0 ]; then
		exec setpriv --reuid="$server_user" --regid="$(id -g "$server_user")" --init-groups -- \
			env -i "${environment[@]}" "$@"
	fi
	exec env -i "${environment[@]}" "$@"
}

# A free TCP port below the range that outgoing connections take theirs from.
free_port()
{
	/usr/bin/python3 - <<-'PYTHON'
	import random, socket
	while True:
	    with socket.socket() as s:
	        try:
	            s.bind(("127.0.0.1", random.randrange(20000, 32000)))
	        except OSError:
	            continue
	        print(s.getsockname()[1])
	        break
	PYTHON
}

# Ends one process that we started, and waits until it is gone.
end_process()
{
	local pid=$1 i
	kill "$pid" 2>/dev/null || return 0
	for i in $(seq 50); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	kill -9 "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
}
