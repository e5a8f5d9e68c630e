# SPDX-License-Identifier: Apache-2.0
# Prints what zsh offers where a line is completed, one word a line: offers.zsh FOLDER LINE. The folder has the
# completion of a command. A shell on a terminal is asked, whose compadd says what it adds.
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= ; stty -echo; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D
first() { print -r -- $'\x01' }
last() { print -r -- $'\x02'; exit }
compprefuncs=(first); comppostfuncs=(last)
compadd() {
  if [[ \${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
    local -a offers
    builtin compadd -A offers \"\$@\"
    print -rl -- \$offers
  fi
  builtin compadd \"\$@\"
}
bindkey '^I' complete-word
print READY"
zpty -r shell line '*READY*'
zpty -w -n shell "$2"$'\t'
zpty -r shell line $'*\x02*'
print -r -- "${${line#*$'\x01'}%$'\x02'*}"
