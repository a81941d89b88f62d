# shell - bash that stays: takes code from descriptor 3, says how it ended on descriptor 4.
# Its own names begin with __warren, so that the code's are free.
__warren_ignore() { :; }
trap __warren_ignore INT # the shell goes on; a program that it runs is ended
shopt -s expand_aliases
exec 5>&1 6>&2 # where the marks go, whatever the code does to its output
echo ready >&4

# Names that a shell cannot have are left out.
__warren_valid()
{
    __warren_name=${__warren_pair%%=*}
    [[ $__warren_name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]]
}

__warren_field() { IFS= read -r -d '' "$1" <&3; }

while __warren_field __warren_mark; do
    while __warren_field __warren_pair && [ -n "$__warren_pair" ]; do
        __warren_valid && export "$__warren_pair"
    done
    declare -A __warren_before=()
    __warren_unset=()
    while __warren_field __warren_pair && [ -n "$__warren_pair" ]; do
        __warren_valid || continue
        if [ -n "${!__warren_name+set}" ]; then
            __warren_before[$__warren_name]=${!__warren_name}
        else
            __warren_unset+=("$__warren_name")
        fi
        export "$__warren_pair"
    done
    __warren_field __warren_code || exit
    eval "$__warren_code" </dev/null 3<&- 4>&- 5>&- 6>&-
    __warren_status=$?
    for __warren_name in "${!__warren_before[@]}"; do
        export "$__warren_name=${__warren_before[$__warren_name]}"
    done
    for __warren_name in "${__warren_unset[@]}"; do
        unset "$__warren_name"
    done
    trap __warren_ignore INT
    [ "$__warren_status" = 0 ] || echo "$__warren_status" >&4
    printf %s "$__warren_mark" >&5
    printf %s "$__warren_mark" >&6
    echo done >&4
done
