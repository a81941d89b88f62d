# ./dev package: a Debian package of this tree, dist/warren_VERSION_ARCH.deb.

. build-aux/place.sh
build build
packages $PACKAGE_PACKAGES
version=$(build/warren --version | awk '{print $2}')
arch=$(dpkg --print-architecture)
deb=$PWD/dist/warren_${version}_$arch.deb
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Which packages the libraries are in, and since which version, as Debian's own tool says.
library_packages()
{
    mkdir "$work/debian"
    printf 'Source: warren\n\nPackage: warren\nArchitecture: any\n' >"$work/debian/control"
    # The static programs and the scripts need none.
    elf=$(cd "$root/usr/bin" && for f in *; do
        LC_ALL=C readelf -d "$f" 2>/dev/null | grep -q NEEDED && echo "$root/usr/bin/$f" || true
    done)
    # shellcheck disable=SC2086
    (cd "$work" && dpkg-shlibdeps -O $elf 2>/dev/null) | sed 's/^shlibs:Depends=//'
}

comma() # word...
{
    echo "$@" | sed 's/ \{1,\}/, /g'
}

write_control()
{
    cat <<END
Package: warren
Version: $version
Architecture: $arch
Maintainer: The Warren maintainers <warren@localhost>
Installed-Size: $(du -sk "$root" | cut -f 1)
Depends: $(library_packages), $(comma $RUN_PACKAGES mmdebstrap zstd), init-system-helpers
Recommends: npm
Section: admin
Priority: optional
Description: isolated Linux computers for AI agents and other untrusted code
 Warren makes sandboxes in milliseconds, runs commands, files and terminals in
 them, checkpoints and forks them while they run, and mediates what enters and
 leaves them. It needs a Linux kernel and nothing else: no KVM, no container
 engine, no database.
END
}

package()
{
    root=$work/root
    mkdir -p "$root"
    chmod 0755 "$work" "$root"
    place "$root" /usr /lib/systemd/system
    find "$root/usr/bin" -type f -exec sh -c 'readelf -h "$1" >/dev/null 2>&1 && strip "$1" || true' - {} \;
    cp "$root/usr/share/warren/warren.conf" "$root/etc/warren/warren.conf"
    install -D -m 0644 LICENSE "$root/usr/share/doc/warren/copyright"
    gzip -9n <README.md >"$root/usr/share/doc/warren/README.md.gz"
    mkdir "$root/DEBIAN"
    for script in postinst prerm postrm; do
        install -m 0755 "etc/debian/$script" "$root/DEBIAN/$script"
    done
    (cd "$root" && find etc -type f -printf '/%p\n' | LC_ALL=C sort) >"$root/DEBIAN/conffiles"
    write_control >"$root/DEBIAN/control"
    mkdir -p dist
    dpkg-deb --root-owner-group --build "$root" "$deb"
}

umask 022
step "Packing $(basename "$deb")" package
say "-- Install it with: sudo apt-get install $deb"
echo "$deb"
