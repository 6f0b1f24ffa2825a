#!/bin/sh
# Completion by bash, zsh and fish: what the command offers, and what the scripts make of it. Prints TAP.
. "$(dirname "$0")/setup.sh"
mkdir bin && ln -s "$wengert" bin/wengert
PATH=$work/bin:$PATH
echo text >'a text.txt'

# offers WANTED WORD...: the candidates for the last word, joined by spaces.
offers() {
    wanted=$1
    shift
    run --complete "$@"
    check "wengert $* offers $wanted" test "$code" = 0 -a "$(cut -f 1 out | paste -s -d ' ')" = "$wanted"
}
offers 'pretrain' pretr
offers '--preset' pretrain bert --pres
offers 'bert-tiny' pretrain bert --preset bert-t
offers 'gpt2-mini gpt2-medium' pretrain gpt --steps 3 --preset gpt2-m
offers 'linear' pretrain --schedule lin
offers 'squad' finetune run.h5 --task sq
offers ':files' finetune --train ''
offers ':files' info ''
offers 'logsumexp' bench ops logsume
offers 'train' tokenizer tr
offers 'check :files' corpus ch
offers '--kind' tokenizer train --ki
offers '' generate --prompt 'Once'
run --complete no-such-verb --he
check "a verb that is not there offers nothing" test ! -s out

# The lines of --help and those of --complete are of the same tables.
"$wengert" pretrain --help | grep -o '^ *\(-., \)\{0,1\}--[a-z0-9-]*' | grep -o -- '--.*' |
    LC_ALL=C sort -u >help
"$wengert" --complete pretrain -- | cut -f 1 | LC_ALL=C sort -u >offered
check "every option that --help shows is offered" cmp help offered

# by_bash LINE...: what bash makes of the words after "wengert".
by_bash() {
    bash -c '
        source "$1"
        shift
        COMP_WORDS=(wengert "$@") COMP_CWORD=$#
        _wengert wengert
        printf "%s\n" "${COMPREPLY[@]}"' bash "$source/completion/wengert" "$@" >out 2>err
    paste -s -d ' ' out
}
completes_bash() {
    wanted=$1
    shift
    check "bash: wengert $*" test "$(by_bash "$@")" = "$wanted"
}
if command -v bash >/dev/null; then
    completes_bash 'generate gradcheck' g
    completes_bash '--max-tokens' generate --max
    completes_bash 'bert-tiny' pretrain bert --preset bert-t
    completes_bash 'bert-tiny' pretrain bert --preset = bert-t
    completes_bash 'a text.txt' pretrain bert --corpus a
    completes_bash '' pretrain bert --no-such-option
else
    skip "bash completes" "there is no bash"
fi
if command -v fish >/dev/null; then
    printf 'generate\ngradcheck\n' >wanted
    HOME=$work fish -c 'source $argv[1]; complete -C "wengert g"' "$source/completion/wengert.fish" \
        2>err | cut -f 1 >out
    check "fish: wengert g" cmp wanted out
else
    skip "fish: wengert g" "there is no fish"
fi
if command -v zsh >/dev/null; then
    cat >zshrc <<'ZSH'
_describe() { print -rl -- ${(P)2} }
_files() { print files }
words=(wengert "${(@)argv[2,-1]}")
CURRENT=$#words
source $1
ZSH
    echo bert-tiny >wanted
    zsh -f zshrc "$source/completion/_wengert" pretrain bert --preset bert-t >out 2>err
    check "zsh: wengert pretrain bert --preset bert-t" cmp wanted out
else
    skip "zsh: wengert pretrain bert --preset bert-t" "there is no zsh"
fi
finish
