# What zsh makes of a line when Tab is pressed: zsh -f scripts/complete.zsh "siderite node prov"
zmodload zsh/zpty
zpty -b shell zsh -f -i
zpty -w shell "PROMPT=; eval \"\$(siderite completion zsh)\"; echo rea''dy"
read_until() {
    seen=
    for _ in {1..100}; do
        zpty -r -t shell piece && seen+=$piece
        [[ $seen == *$1* ]] && return
        sleep 0.1
    done
}
read_until ready
zpty -w -n shell "$1"$'\t'
read_until "$1?"
sleep 1
zpty -r -t shell piece && seen+=$piece
zpty -d shell
print -r -- "$seen"
