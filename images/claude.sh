# claude - base with the coding agents that people run in a terminal: claude, codex and gemini, the
# newest when the image is made. What their packages run on installation runs in the image.
. ./base.sh

extend()
{
    install_node "$1" @anthropic-ai/claude-code @openai/codex @google/gemini-cli
    chroot "$1" node /usr/local/lib/node_modules/@anthropic-ai/claude-code/install.cjs >&2
    rm -rf "$1/root/.npm" "$1/root/.claude" "$1/root/.codex"
}

verify="$verify; claude --version; codex --version; gemini --version"
