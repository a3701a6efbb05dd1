# SPDX-License-Identifier: Apache-2.0
# gnuplot -c plot.gp CSV ALGORITHM TITLE NAME: draws the speed over the size of calls from a CSV file of bench, as
# NAME.svg and NAME.png.
csv = ARG1
algorithm = ARG2
sides = "default provider bare afalg devcrypto"
label(s) = s eq "default" ? "default provider" : s eq "provider" ? "afalgprov" : s eq "bare" ? "bare AF_ALG" : "engine ".s

set datafile separator ","
set datafile missing NaN # the rows of other sides do not interrupt a line
# Only sides that the file has are drawn; each keeps its colour in all plots.
rows(s) = system(sprintf("grep -c '^%s,.*,%s,' '%s' || true", algorithm, s, csv)) + 0
present = ""
do for [i = 1:words(sides)] { if (rows(word(sides, i)) > 0) { present = present." ".i } }

set title ARG3
set xlabel "bytes a call"
set ylabel "MB/s"
set logscale x 2
set logscale y 10
set format x "%.0f"
set grid
set key bottom right
set style data linespoints
speed(a, side, s, v) = a eq algorithm && side eq s ? v : NaN

do for [format in "svg png"] {
  if (format eq "svg") { set terminal svg noenhanced size 800,500 background "white" } else { set terminal pngcairo noenhanced size 800,500 }
  set output ARG4.".".format
  plot for [i in present] csv every ::1 using 2:(speed(strcol(1), strcol(4), word(sides, i + 0), $5)) \
    title label(word(sides, i + 0)) linetype i + 0 linewidth 2
  set output
}
