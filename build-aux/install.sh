# ./dev install: everything in its place. Starts nothing.

prefix=${PREFIX:-/usr/local}
. build-aux/place.sh
build build
# shellcheck disable=SC2086
packages $RUN_PACKAGES $IMAGE_PACKAGES
memory_keeper
id warren >/dev/null 2>&1 || useradd --system --no-create-home --shell /usr/sbin/nologin warren
place "" "$prefix" /etc/systemd/system
# Settings that are there are the operator's.
[ -e /etc/warren/warren.conf ] || cp "$prefix/share/warren/warren.conf" /etc/warren/warren.conf
say "-- Installed under $prefix; start it with: systemctl enable --now warren"
