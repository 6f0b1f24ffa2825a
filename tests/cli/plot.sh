#!/bin/sh
# `wengert plot': several runs, metrics, smoothing and logarithmic axes. Prints TAP.
. "$(dirname "$0")/setup.sh"
book 300 >text.txt
tiny gpt 300 32 >tiny.json
for seed in 1 2; do
    run pretrain gpt --corpus text.txt --config tiny.json --batch 4 --seq 32 --steps 40 --eval-every 10 \
        --seed $seed --out "run$seed.h5"
done

misused 'missing RUN.h5' plot -o a.svg
misused '--log' plot run1.h5 -o a.svg --log z
misused '--smooth' plot run1.h5 -o a.svg --smooth 0
refuses 'a metric that there is not' "did you mean 'loss'" plot run1.h5 -o bad.svg --metric los
refuses 'a second run that is not there' 'none.h5' plot run1.h5 none.h5 -o bad.svg
"$wengert" convert "$source/tests/fixtures/convert/llama" model.h5 >/dev/null 2>&1
refuses 'a model that was not trained here' 'no training history' plot model.h5 -o bad.svg

# What gnuplot is told, by one that only keeps it.
mkdir fake
cat >fake/gnuplot <<'END'
#!/bin/sh
cat >script.txt
END
chmod +x fake/gnuplot
script() {
    PATH=$work/fake:$PATH run plot "$@"
}
block() {
    sed -n "/^\$$1 << EOD/,/^EOD/p" script.txt | sed '1d;$d'
}
script run1.h5 -o a.svg
check 'one run is drawn by its metrics' eval "test \$code = 0 && grep -q \"title 'loss, training'\" script.txt"
script run1.h5 run2.h5 -o a.svg
check 'each run has its name and its colour' eval "grep -q \"title 'run1: loss, training'\" script.txt &&
    grep -q \"title 'run2: loss, held out'\" script.txt && grep -q '#0072b2' script.txt &&
    grep -q '#d55e00' script.txt"
check 'no axis is logarithmic' eval '! grep -q logscale script.txt'
script run1.h5 -o a.svg --log xy --metric lr --metric loss
check 'a panel for each metric, logarithmic' eval "grep -q 'logscale x' script.txt &&
    grep -q 'logscale y' script.txt && grep -q 'layout 2,1' script.txt && grep -q \"ylabel 'lr'\" script.txt"
column=$(sed -n 's/^plot \$training_0_\([0-9]*\).*loss.*/\1/p' script.txt)
block "training_0_$column" >raw
script run1.h5 -o a.svg --metric loss --smooth 8
block "training_0_$column" >smooth
awk 'NR == FNR { y[NR] = $2; next }
    { sum = n = 0; for (i = FNR; i > 0 && i > FNR - 8; i--) { sum += y[i]; n++ }
      if ((sum / n - $2) ^ 2 > 1e-10) bad = 1 } END { exit bad || FNR != 40 }' raw smooth
check 'smooth values are means of the last steps' test $? = 0

if command -v gnuplot >/dev/null; then
    for suffix in svg png; do
        run plot run1.h5 run2.h5 -o both.$suffix --smooth 5 --log x
        check "two runs in a picture, .$suffix" eval 'test $code = 0 && ! test -s err && test -s both.$suffix'
    done
    check 'the legend has both' eval 'grep -q "run1: loss" both.svg && grep -q "run2: loss" both.svg'
else
    skip 'two runs in a picture' 'gnuplot is not installed'
fi
finish
