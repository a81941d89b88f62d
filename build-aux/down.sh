# ./dev down: stop the daemon and every sandbox that it made; what they stored stays.

data=${WARREN_DATA:-/var/lib/warren}
run=${WARREN_RUN:-/run/warren}

pid=$(cat "$data/warrend.pid" 2>/dev/null || echo none)
case $(readlink "/proc/$pid/exe") in
*/warrend | */warrend\ *)
    stop_daemon "$pid"
    say "-- The daemon is stopped"
    ;;
*) say "-- No daemon runs" ;;
esac
rm -f "$data/warrend.pid"
[ ! -x build/warren-keeper ] || step "Ending the sandboxes" \
    build/warren-keeper --data "$data" --run "$run" --cgroup "$(cgroup_of "$run")" --teardown
link=$(command_directory)/warren
[ "$(readlink "$link")" != "$PWD/build/warren" ] || rm -f "$link"
