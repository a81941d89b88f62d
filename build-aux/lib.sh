# What ./dev and its helpers share: saying things, long steps, Debian packages.

say()
{
    printf '%s\n' "$*" >&2
}

fail()
{
    say "dev: $*"
    exit 1
}

need_root()
{
    [ "$(id -u)" = 0 ] || fail "this needs root: sudo ./dev $command"
}

# Each run directory has a control group of its own, so that daemons side by side do not meet.
cgroup_of() # run directory
{
    echo "warren-$(printf %s "$1" | cksum | cut -d ' ' -f 1)"
}

# Where `up` links the command: not for a daemon in directories of its own, unless WARREN_BIN says so.
command_directory()
{
    [ "${WARREN_RUN:-/run/warren}" != /run/warren ] || default=/usr/local/bin
    echo "${WARREN_BIN:-${default:-}}"
}

is_build_link() # path
{
    [ -L "$1" ] && case $(readlink "$1") in */build/warren) ;; *) false ;; esac
}

# End a daemon: it needs 20 seconds at most (src/daemon/main.c). One that does not end by itself is
# killed; the next start finds all that is there, as after a crash.
stop_daemon() # pid
{
    kill "$1" 2>/dev/null || return 0
    tries=250
    while [ -d "/proc/$1" ]; do
        tries=$((tries - 1))
        if [ "$tries" = 0 ]; then
            say "-- The daemon (pid $1) does not stop; killing it"
            kill -KILL "$1" 2>/dev/null || true
        fi
        [ "$tries" -gt -50 ] || fail "the daemon (pid $1) cannot be killed"
        sleep 0.1
    done
}

# Run a command with its output kept aside, showing that it lives: on a terminal one moving line,
# elsewhere a line now and then. Its output is shown only when it fails.
step() # title, command...
{
    title=$1
    shift
    log=$(mktemp)
    began=$(date +%s)
    told=0
    [ -t 2 ] || say "-- $title"
    "$@" >"$log" 2>&1 </dev/null &
    child=$!
    trap 'kill "$child" 2>/dev/null; rm -f "$log"; exit 130' INT TERM
    while kill -0 "$child" 2>/dev/null; do
        sleep 0.1
        took=$(($(date +%s) - began))
        if [ -t 2 ]; then
            printf '\r\033[K-- %s (%d s) %.50s' "$title" "$took" "$(last_line)" >&2
        elif [ $((took - told)) -ge 15 ]; then
            told=$took
            say "   $took s: $(last_line)"
        fi
    done
    if wait "$child"; then
        [ ! -t 2 ] || printf '\r\033[K-- %s (%d s)\n' "$title" "$(($(date +%s) - began))" >&2
        trap - INT TERM
        rm -f "$log"
    else
        say ""
        tail -n 60 "$log" >&2
        rm -f "$log"
        fail "failed: $title (the end of its output is above)"
    fi
}

last_line()
{
    tail -c 400 "$log" | tr '\r' '\n' | grep -v '^ *$' | tail -n 1 | tr -d '\000-\037'
}

# Install Debian packages, only those that are missing.
packages() # name...
{
    if ! command -v dpkg-query >/dev/null; then
        say "dev: not a Debian system; it needs the equivalents of: $*"
        return
    fi
    have=" $(dpkg-query -W -f '${db:Status-Status}/${Package} ' "$@" 2>/dev/null || true)"
    missing=
    for name in "$@"; do
        case $have in *" installed/$name "*) ;; *) missing="$missing $name" ;; esac
    done
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || fail "these packages are missing; install them with:
    sudo apt-get install$missing"
    export DEBIAN_FRONTEND=noninteractive
    step "Reading the package lists" sh -c 'apt-get update || echo "not all lists could be read"'
    # shellcheck disable=SC2086
    step "Installing$missing" apt-get install -y --no-install-recommends \
        -o DPkg::Lock::Timeout=300 $missing
}

# Build one flavour in a directory of its own, as the owner of the tree where root runs this.
build() # directory, meson options...
{
    dir=$1
    shift
    # shellcheck disable=SC2086
    packages $BUILD_PACKAGES
    as=
    owner=$(stat -c %U .)
    if [ "$(id -u)" = 0 ] && [ "$owner" != root ] && id "$owner" >/dev/null 2>&1; then
        as="runuser -u $owner --"
    fi
    # meson.build lists what lies in the directories, so a new file needs a new look.
    sources=$(find src fuzz meson.build -name '*.c' -o -name meson.build | LC_ALL=C sort | cksum)
    if [ ! -f "$dir/build.ninja" ]; then
        step "Configuring $dir" $as meson setup "$@" "$dir"
    elif [ "$sources" != "$(cat "$dir/.sources" 2>/dev/null)" ]; then
        step "Configuring $dir again" $as meson setup --reconfigure "$@" "$dir"
    fi
    echo "$sources" >"$dir/.sources"
    step "Building $dir" $as ninja -C "$dir"
}

base_image()
{
    images/build base --cached >/dev/null ||
        step "Making the base image (about a minute)" images/build base
}

# A CRIU that works here, found or fetched. Without one all but sandboxes' memory works.
memory_keeper()
{
    build-aux/criu --cached >/dev/null 2>&1 && return
    step "Looking for a CRIU that works on this kernel" sh -c 'build-aux/criu || true'
    why=$(sed -n 's/^why //p' "${WARREN_CACHE:-/var/cache/warren}/criu/record" 2>/dev/null)
    [ -z "$why" ] || say "-- Sandboxes cannot be paused with their memory: $why"
}
