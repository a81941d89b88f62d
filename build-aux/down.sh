# ./dev down: stop the daemon and every sandbox that it made; what they stored stays.

data=${WARREN_DATA:-/var/lib/warren}
run=${WARREN_RUN:-/run/warren}

pid=$(cat "$data/warrend.pid" 2>/dev/null || echo none)
case $(readlink "/proc/$pid/exe") in
*/warrend | */warrend\ *)
    kill "$pid"
    tries=100
    while [ -d "/proc/$pid" ]; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || fail "the daemon (pid $pid) does not stop"
        sleep 0.1
    done
    say "-- The daemon is stopped"
    ;;
*) say "-- No daemon runs" ;;
esac
rm -f "$data/warrend.pid"
[ ! -x build/warren-keeper ] || step "Ending the sandboxes" \
    build/warren-keeper --data "$data" --run "$run" --cgroup "$(cgroup_of "$run")" --teardown
