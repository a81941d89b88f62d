# desktop - base with a screen: X without hardware, a window manager, Chromium, and the screen as a
# page on port 6080 (noVNC) or as VNC on 5900. `warren-desktop` brings it all up.
. ./base.sh

packages="$packages chromium dbus dbus-x11 fonts-dejavu-core fonts-liberation fonts-noto-color-emoji \
novnc openbox scrot websockify x11-utils x11-xserver-utils x11vnc xauth xclip xdotool xterm xvfb"

extend()
{
    install -m 0755 desktop/warren-desktop "$1/usr/local/bin/warren-desktop"
    # The wall is the sandbox itself; Chromium's own needs kernel features that are closed in here.
    # What is in /dev/shm counts as memory, which is scarcer than disk.
    printf '%s\n' 'export CHROMIUM_FLAGS="$CHROMIUM_FLAGS --no-sandbox --disable-dev-shm-usage \
--disable-gpu --no-first-run --no-default-browser-check --password-store=basic --test-type"' \
        >"$1/etc/chromium.d/warren"
    printf '<!doctype html><meta http-equiv="refresh" content="0; url=vnc.html?autoconnect=1&resize=scale">\n' \
        >"$1/usr/share/novnc/index.html"
    printf 'DISPLAY=:0\nDBUS_SESSION_BUS_ADDRESS=unix:path=/tmp/.session-bus\n' >>"$1/etc/environment"
}

verify="$verify; command -v Xvfb x11vnc openbox xterm scrot xdotool websockify xclip; chromium --version"
