# Functions of the demo's scripts: each step prints a sentence and the typed command, then the command's output.
# shellcheck shell=bash
pin=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.venv/bin/pin

# Prints a sentence about what happens next.
say() {
    printf '\n# %s\n' "$1"
}

# Prints a command as it is typed.
show() {
    printf '$'
    local word
    for word in "$@"; do
        case $word in
        *[[:space:]]*) printf ' "%s"' "${word/#$PWD\//}" ;;
        *) printf ' %s' "${word/#$PWD\//}" ;;
        esac
    done
    echo
}

# run SENTENCE ARGUMENTS...: prints the sentence and a command of pin, then runs the command.
run() {
    say "$1"
    shift
    show pin "$@"
    "$pin" "$@"
}

# refused REASON SENTENCE ARGUMENTS...: the same with a command that must fail for that reason.
refused() {
    local reason=$1 output
    say "$2"
    shift 2
    # A caller other than the administrator of the platform has a token in a file.
    if [ -n "${PIN_TOKEN:-}" ]; then show "PIN_TOKEN=$PIN_TOKEN" pin "$@"; else show pin "$@"; fi
    if output=$("$pin" "$@" 2>&1); then
        printf '%s\n' "$output"
        echo "expected a refusal: $reason" >&2
        exit 1
    fi
    printf '%s\n' "$output"
    case $output in *"$reason"*) ;; *) echo "expected a refusal: $reason" >&2 && exit 1 ;; esac
}
