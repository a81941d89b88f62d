# bash completion for warren, made by `warren completion bash`.
_warren()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local cmd='' words='' i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --socket | --url | --key) ((i++)) ;;
        -*) ;;
        *)
            cmd=${cmd:+$cmd }${COMP_WORDS[i]}
            [[ $cmd == @(image|key) ]] || break
            ;;
        esac
    done
    case "$cmd $prev" in
    'run '--image) words=$(warren __complete image 2>/dev/null) ;;
    'run '--cpus|'run '-c) return ;;
    'run '--memory|'run '-m) return ;;
    'run '--disk) return ;;
    'run '--pids) return ;;
    'run '--nofile) return ;;
    'run '--env|'run '-e) return ;;
    'run '--user|'run '-u) return ;;
    'run '--workdir|'run '-w) return ;;
    'run '--name|'run '-n) return ;;
    'run '--metadata) return ;;
    'run '--timeout) return ;;
    'create '--image) words=$(warren __complete image 2>/dev/null) ;;
    'create '--cpus|'create '-c) return ;;
    'create '--memory|'create '-m) return ;;
    'create '--disk) return ;;
    'create '--pids) return ;;
    'create '--nofile) return ;;
    'create '--env|'create '-e) return ;;
    'create '--user|'create '-u) return ;;
    'create '--workdir|'create '-w) return ;;
    'create '--name|'create '-n) return ;;
    'create '--metadata) return ;;
    'create '--timeout) return ;;
    'create '--on-timeout) words='delete stop' ;;
    'create '--idle-timeout) return ;;
    'create '--on-idle) words='stop delete' ;;
    'ls '--state) words='creating running stopping stopped deleting' ;;
    'ls '--metadata) return ;;
    'ls '--limit) return ;;
    'exec '--env|'exec '-e) return ;;
    'exec '--user|'exec '-u) return ;;
    'exec '--workdir|'exec '-w) return ;;
    'exec '--timeout) return ;;
    'exec '--label) return ;;
    'shell '--env|'shell '-e) return ;;
    'shell '--user|'shell '-u) return ;;
    'shell '--workdir|'shell '-w) return ;;
    'logs '--since) return ;;
    'kill '--signal|'kill '-s) words='TERM INT HUP KILL QUIT STOP CONT USR1 USR2' ;;
    'kill '--scope) words='process group tree' ;;
    'update '--name|'update '-n) return ;;
    'update '--metadata) return ;;
    'update '--unset-metadata) return ;;
    'update '--env|'update '-e) return ;;
    'update '--unset-env) return ;;
    'update '--cpus|'update '-c) return ;;
    'update '--memory|'update '-m) return ;;
    'update '--disk) return ;;
    'update '--pids) return ;;
    'update '--timeout) return ;;
    'update '--on-timeout) words='delete stop' ;;
    'update '--idle-timeout) return ;;
    'update '--on-idle) words='stop delete' ;;
    'events '--sandbox) words=$(warren __complete sandbox 2>/dev/null) ;;
    'events '--since) return ;;
    'events '--limit) return ;;
    'image import '--name|'image import '-n) return ;;
    *) case $prev in
    ''--socket) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    ''--url) return ;;
    ''--key) return ;;
    esac ;;
    esac
    [[ -z $words ]] && case "$cmd ${cur:0:1}" in
    ' -') words=' --json --socket --url --key --help --version' ;;
    ' '*) words=' run create ls get exec shell ps logs attach kill stop start rm update usage events image key doctor version completion help' ;;
    'run -') words=' --interactive --tty --image --cpus --memory --disk --pids --nofile --env --user --workdir --name --metadata --timeout --keep --json --socket --url --key --help --version' ;;
    'run '*) return ;;
    'create -') words=' --image --cpus --memory --disk --pids --nofile --env --user --workdir --name --metadata --timeout --on-timeout --idle-timeout --on-idle --json --socket --url --key --help --version' ;;
    'create '*) return ;;
    'ls -') words=' --state --metadata --limit --oldest --quiet --json --socket --url --key --help --version' ;;
    'ls '*) return ;;
    'get -') words=' --json --socket --url --key --help --version' ;;
    'get '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'exec -') words=' --interactive --tty --detach --env --user --workdir --timeout --label --json --socket --url --key --help --version' ;;
    'exec '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'shell -') words=' --env --user --workdir --json --socket --url --key --help --version' ;;
    'shell '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'ps -') words=' --all --json --socket --url --key --help --version' ;;
    'ps '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'logs -') words=' --follow --since --json --socket --url --key --help --version' ;;
    'logs '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'attach -') words=' --no-stdin --json --socket --url --key --help --version' ;;
    'attach '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'kill -') words=' --signal --scope --json --socket --url --key --help --version' ;;
    'kill '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'stop -') words=' --json --socket --url --key --help --version' ;;
    'stop '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'start -') words=' --json --socket --url --key --help --version' ;;
    'start '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'rm -') words=' --force --all --json --socket --url --key --help --version' ;;
    'rm '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'update -') words=' --name --no-name --metadata --unset-metadata --env --unset-env --cpus --memory --disk --pids --timeout --on-timeout --idle-timeout --on-idle --json --socket --url --key --help --version' ;;
    'update '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'usage -') words=' --json --socket --url --key --help --version' ;;
    'usage '*) words=$(warren __complete sandbox 2>/dev/null) ;;
    'events -') words=' --follow --sandbox --since --limit --json --socket --url --key --help --version' ;;
    'events '*) return ;;
    'image ls -') words=' --json --socket --url --key --help --version' ;;
    'image ls '*) return ;;
    'image import -') words=' --name --json --socket --url --key --help --version' ;;
    'image import '*) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    'image rm -') words=' --json --socket --url --key --help --version' ;;
    'image rm '*) words=$(warren __complete image 2>/dev/null) ;;
    'key create -') words=' --json --socket --url --key --help --version' ;;
    'key create '*) return ;;
    'key ls -') words=' --json --socket --url --key --help --version' ;;
    'key ls '*) return ;;
    'key rm -') words=' --json --socket --url --key --help --version' ;;
    'key rm '*) words=$(warren __complete key 2>/dev/null) ;;
    'doctor -') words=' --json --socket --url --key --help --version' ;;
    'doctor '*) return ;;
    'version -') words=' --json --socket --url --key --help --version' ;;
    'version '*) return ;;
    'completion -') words=' --json --socket --url --key --help --version' ;;
    'completion '*) words='bash zsh fish' ;;
    'help -') words=' --json --socket --url --key --help --version' ;;
    'help '*) words=$(warren __complete command 2>/dev/null) ;;
    'image '*) words=' ls import rm' ;;
    'key '*) words=' create ls rm' ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o bashdefault -F _warren warren
