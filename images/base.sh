# base - the image a sandbox starts from unless it asks for another: Debian with what an agent
# reaches for first, and a user with password-less sudo. Read by images/build; a change here is a
# new image. Lean: no documentation, translations or package lists. The other recipes start from
# this one and say what they add.
suite=bookworm

packages="bash ca-certificates curl git iproute2 jq less libnss-myhostname nodejs npm procps \
python-is-python3 python3 ripgrep sudo"

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

    extend "$root"

    # Type declarations and source maps: a tenth of npm's files, and nothing here reads them. (dpkg
    # itself cannot leave them out: some are hard links.)
    [ ! -d "$root/usr/share/nodejs" ] || find "$root/usr/share/nodejs" -type f \( -name '*.d.ts' -o -name '*.map' \) -delete
    rm -rf "$root"/var/log/* "$root"/var/cache/ldconfig/* "$root"/var/cache/debconf/*-old \
        "$root"/var/lib/dpkg/*-old "$root"/etc/*-
}

# What must work in it, run in the image before it counts as made.
verify='set -e; bash --version; python --version; node --version; npm --version; git --version;
curl --version; rg --version; ss --version; [ "$(PATH=/x:/bin:/usr/bin bash -lc "echo \$PATH")" = /x:/bin:/usr/bin ]; jq --version; ps --version; su user -c "sudo -n id -u"'
