# ./dev install: the programs, the unit and the completion in their places. Starts nothing.

prefix=${PREFIX:-/usr/local}
build build
# shellcheck disable=SC2086
packages $RUN_PACKAGES
memory_keeper
id warren >/dev/null 2>&1 || useradd --system --no-create-home --shell /usr/sbin/nologin warren
install -D -m 0755 -t "$prefix/bin" build/warrend build/warren-archive build/warren-keeper build/warren-broker build/warren-acme-hook build/warren-unpack build/warren-bucket build/warren-init build/warren
mkdir -p /etc/systemd/system "$prefix/share/warren"
rm -rf "$prefix/share/warren/images"
cp -R images "$prefix/share/warren/images"
install -m 0755 build-aux/criu "$prefix/bin/warren-criu"
ln -sf ../share/warren/images/warren-image "$prefix/bin/warren-image"
sed "s|@prefix@|$prefix|" etc/warren.service >/etc/systemd/system/warren.service
while read -r shell file; do
    mkdir -p "$prefix/share/$(dirname "$file")"
    build/warren completion "$shell" >"$prefix/share/$file"
done <<END
bash bash-completion/completions/warren
zsh zsh/site-functions/_warren
fish fish/vendor_completions.d/warren.fish
END
say "-- Installed under $prefix; start it with: systemctl enable --now warren"
