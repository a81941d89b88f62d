# Lay what is installed under $1, as it will be found under $2 (/usr, /usr/local): the programs, the
# recipes of images, the unit, alert rules and dashboard, the sample of the settings, completions and manual pages.
# `./dev install` and `./dev package` share it, so that they cannot differ.

programs="warrend warren warren-acme-hook warren-archive warren-broker warren-bucket warren-init warren-keeper
    warren-unpack"

place() # root, prefix, directory of units
{
    root=$1 prefix=$2 units=$3
    share=$root$prefix/share
    for program in $programs; do
        install -D -m 0755 -t "$root$prefix/bin" "build/$program"
    done
    install -m 0755 build-aux/criu "$root$prefix/bin/warren-criu"
    install -m 0755 build-aux/backup "$root$prefix/bin/warren-backup"
    rm -rf "$share/warren/images"
    mkdir -p "$share/warren" "$root$units" "$root/etc/warren"
    cp -R images "$share/warren/images"
    ln -sf ../share/warren/images/warren-image "$root$prefix/bin/warren-image"
    sed "s|@prefix@|$prefix|" etc/warren.service >"$root$units/warren.service"
    install -D -m 0644 etc/logrotate "$root/etc/logrotate.d/warren"
    install -D -m 0644 -t "$share/warren/prometheus" etc/prometheus/warren.rules.yml
    install -D -m 0644 -t "$share/warren/grafana" etc/grafana/warren.json
    build/warrend --sample-config >"$share/warren/warren.conf"
    place_completions
    place_manual
}

place_completions()
{
    while read -r shell file; do
        mkdir -p "$share/$(dirname "$file")"
        build/warren completion "$shell" >"$share/$file"
    done <<END
bash bash-completion/completions/warren
zsh zsh/site-functions/_warren
fish fish/vendor_completions.d/warren.fish
END
}

# A page for the daemon, one for `warren`, one for each of its commands; all say what --help says.
place_manual()
{
    mkdir -p "$share/man/man1" "$share/man/man8"
    build/warrend --help | build-aux/man warrend 8 | gzip -9n >"$share/man/man8/warrend.8.gz"
    build/warren help | build-aux/man warren 1 | gzip -9n >"$share/man/man1/warren.1.gz"
    build/warren help | sed -n '/^COMMANDS/,/^$/s/^  \([a-z0-9 ]*[a-z0-9]\)   *[A-Z].*/\1/p' |
        while read -r words; do
            page=warren-$(echo "$words" | tr ' ' -)
            # shellcheck disable=SC2086
            build/warren help $words </dev/null | build-aux/man "$page" 1 |
                gzip -9n >"$share/man/man1/$page.1.gz"
        done
}
