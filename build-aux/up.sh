# ./dev up, after the rights are checked: from a bare machine to a first sandbox's answer. Each part
# is skipped where it is already done, so a second run takes seconds.

data=${WARREN_DATA:-/var/lib/warren}
run=${WARREN_RUN:-/run/warren}
listen=${WARREN_LISTEN:-127.0.0.1:7070}
[ "$data" = /var/lib/warren ] && logfile=/var/log/warren/warrend.log || logfile=$data/warrend.log
url=http://$listen

# The admin socket trusts root: no key on a command line.
api() # path, curl options...
{
    path=$1
    shift
    curl --silent --show-error --fail-with-body --unix-socket "$run/warren.sock" "$@" \
        "http://warren$path"
}

healthy()
{
    api /v1/health --max-time 10 >/dev/null 2>&1
}

daemon_pid() # prints it, if the daemon that `up` started still lives
{
    pid=$(cat "$data/warrend.pid" 2>/dev/null) || return 1
    case $(readlink "/proc/$pid/exe") in */warrend | */warrend\ *) echo "$pid" ;; *) return 1 ;; esac
}

wait_healthy() # for half a minute, or until the daemon ends
{
    tries=300
    until healthy; do
        tries=$((tries - 1))
        sleep 0.1
        if [ "$tries" = 0 ] || ! daemon_pid >/dev/null; then
            tail -n 5 "$logfile" >&2
            fail "the daemon did not come up; its last words are above, the rest is in $logfile"
        fi
    done
}

# shellcheck disable=SC2086
packages $BUILD_PACKAGES $RUN_PACKAGES $IMAGE_PACKAGES
build build
base_image
memory_keeper
image=$(images/build base)
id warren >/dev/null 2>&1 ||
    useradd --system --no-create-home --home-dir "$data" --shell /usr/sbin/nologin warren

# The first key: the caller's, or the one of last time, or a new one.
mkdir -p "$data" "$run" "$(dirname "$logfile")"
old_key=$(cat "$data/first-key" 2>/dev/null || true)
key=${WARREN_API_KEY:-$old_key}
[ -n "$key" ] || key=warren_$(od -An -N20 -tx1 /dev/urandom | tr -d ' \n')
[ "${#key}" -ge 20 ] || fail "WARREN_API_KEY must have 20 characters or more"
if [ "$key" != "$old_key" ]; then
    (umask 077 && printf '%s\n' "$key" >"$data/first-key")
fi

# A daemon of an older build, with another key or without an answer is replaced; the sandboxes do not
# notice.
if pid=$(daemon_pid); then
    if [ build/warrend -nt "$data/warrend.pid" ] || [ "$key" != "$old_key" ]; then
        stop_daemon "$pid"
    elif ! healthy; then
        say "-- The daemon (pid $pid) does not answer; replacing it"
        stop_daemon "$pid"
    fi
fi
if ! daemon_pid >/dev/null; then
    if [ -d /run/systemd/system ] && systemctl is-active --quiet warren; then
        fail "warren already runs as a service; stop it first: systemctl stop warren"
    fi
    WARREN_API_KEY=$key WARREN_CRIU=${WARREN_CACHE:-/var/cache/warren}/criu/record setsid "$PWD/build/warrend" --listen "$listen" --data "$data" \
        --run "$run" --cgroup "$(cgroup_of "$run")" >>"$logfile" 2>&1 </dev/null &
    echo $! >"$data/warrend.pid"
    wait_healthy
    say "-- The daemon runs, log in $logfile"
fi

recipe=$(basename "$image")
if [ "$recipe" != "$(cat "$data/base-image" 2>/dev/null)" ] || ! api /v1/images | grep -q '"base"'; then
    step "Handing the image to the daemon" env WARREN_SOCKET="$run/warren.sock" \
        images/warren-image base
    echo "$recipe" >"$data/base-image"
fi

field() # name, JSON: a member that is text or a number
{
    printf '%s' "$2" | tr -d '\n' | sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"
}

milliseconds() # an answer of api, with its seconds
{
    field seconds "$1" | awk '{printf "%.1f ms", $1 * 1000}'
}

# The sandbox that an earlier run made, for another hour; else a new one.
first_sandbox() # sets sandbox and took
{
    sandbox=$(build/warren --socket "$run/warren.sock" ls -q --limit 1 --metadata "made-by=dev up")
    if [ -n "$sandbox" ] && api "/v1/sandboxes/$sandbox/start" --request POST >/dev/null 2>&1 &&
        api "/v1/sandboxes/$sandbox" --request PATCH --data '{"timeout_s": 3600}' >/dev/null; then
        took="The sandbox of the last time is still there;"
        return
    fi
    made=$(api /v1/sandboxes --write-out '{"seconds": %{time_total}}' \
        --data '{"timeout_s": 3600, "metadata": {"made-by": "dev up"}}') || fail "no sandbox: $made"
    sandbox=$(field id "$made")
    took="$(milliseconds "$made") to make a sandbox,"
}

# Make a typed `warren` run this build, and set $warren to what to type. Only a link that leads to a
# build is replaced: an installed program stays.
link_command()
{
    bin=$(command_directory)
    if [ -n "$bin" ] && { [ ! -e "$bin/warren" ] || is_build_link "$bin/warren"; }; then
        mkdir -p "$bin"
        ln -sfn "$PWD/build/warren" "$bin/warren"
    fi
    warren="sudo $PWD/build/warren"
    ! is_build_link "$bin/warren" || [ "$(command -v warren)" != "$bin/warren" ] || warren="sudo warren"
    [ "$run" = /run/warren ] || warren="$warren --socket $run/warren.sock"
}

program='import os, platform; print(f\"Hello from {platform.node()}, a computer of {os.cpu_count()} cpus, as uid {os.getuid()}\")'
first_sandbox
ran=$(api "/v1/sandboxes/$sandbox/exec" --write-out '{"seconds": %{time_total}}' \
    --data "{\"argv\": [\"python3\", \"-c\", \"$program\"]}") || fail "no answer: $ran"
[ "$(field exit_code "$ran")" = 0 ] || fail "the first program failed: $ran"

link_command
down="sudo ./dev down"
[ "$run $data" = "/run/warren /var/lib/warren" ] || down="sudo WARREN_DATA=$data WARREN_RUN=$run${WARREN_BIN:+ WARREN_BIN=$WARREN_BIN} ./dev down"
cat <<END

    $took $(milliseconds "$ran") to run python3 in it, which said:
    $(printf '%s' "$ran" | tr -d '\n' | sed 's/.*"stdout": *"\([^"]*\)\\n".*/\1/')

    address  $url
    key      $key   (kept in $data/first-key)

Try next:

    $warren run -- python3 -c 'print(6 * 7)'
    $warren exec $sandbox -- ps aux
    $warren shell $sandbox
    curl -H 'Authorization: Bearer $key' $url/v1/sandboxes
    curl -H 'Authorization: Bearer $key' -d '{"shell": "uname -a"}' $url/v1/sandboxes/$sandbox/exec

The sandbox lives for an hour. \`$down\` stops the daemon and all sandboxes.
END
