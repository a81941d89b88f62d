# desktop - base with a screen: X without hardware, Xfce, Chromium, and what E2B's desktop SDK drives
# them with. The screen is a page on port 6080 (noVNC) or VNC on 5900. `warren-desktop` brings it
# all up; the SDK brings its parts up one by one, as it likes them.
. ./base.sh

packages="$packages chromium dbus dbus-x11 exo-utils fonts-dejavu-core fonts-liberation fonts-noto-color-emoji \
libgtk-3-bin mousepad net-tools novnc scrot thunar websockify x11-utils x11-xserver-utils x11vnc xauth xclip \
xdg-utils xdotool xfce4-panel xfce4-session xfce4-terminal xfdesktop4 xfwm4 xterm xvfb"

extend()
{
    install -m 0755 desktop/warren-desktop "$1/usr/local/bin/warren-desktop"
    # The wall is the sandbox itself; Chromium's own needs kernel features that are closed in here.
    # What is in /dev/shm counts as memory, which is scarcer than disk.
    printf '%s\n' 'export CHROMIUM_FLAGS="$CHROMIUM_FLAGS --no-sandbox --disable-dev-shm-usage \
--disable-gpu --no-first-run --no-default-browser-check --password-store=basic --test-type"' \
        >"$1/etc/chromium.d/warren"
    # Where rules name hosts, a hello that may hide another name does not pass.
    install -d "$1/etc/chromium/policies/managed"
    printf '{"EncryptedClientHelloEnabled": false}\n' >"$1/etc/chromium/policies/managed/warren.json"
    printf '<!doctype html><meta http-equiv="refresh" content="0; url=vnc.html?autoconnect=1&resize=scale">\n' \
        >"$1/usr/share/novnc/index.html"
    ln -s /usr/share/novnc "$1/opt/noVNC" # where the SDK looks
    # Programs written for E2B launch the browser by this name.
    sed 's/^\[Desktop Entry\]$/&\nNoDisplay=true/' "$1/usr/share/applications/chromium.desktop" \
        >"$1/usr/share/applications/google-chrome.desktop"
    # Whoever starts a program finds the session's bus by the screen, and for that by this id; it
    # names no machine, all sandboxes of the image have it.
    printf '%s\n' 77617272656e2d6465736b746f702d31 >"$1/etc/machine-id"
    cp desktop/*.xml "$1/etc/xdg/xfce4/xfconf/xfce-perchannel-xml/"
    printf 'DISPLAY=:0\nLANG=C.UTF-8\n' >>"$1/etc/environment"
    # For those who write graphics drivers, and for those who look up makers of network cards.
    rm -rf "$1"/usr/lib/chromium/libVkLayer_* "$1"/usr/share/ieee-data/*
}

verify="$verify; command -v Xvfb x11vnc startxfce4 xfwm4 xfdesktop xterm scrot xdotool websockify xclip \
xdpyinfo xrandr xdg-open gtk-launch netstat; test -x /opt/noVNC/utils/novnc_proxy; chromium --version"
