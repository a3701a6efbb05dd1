# SPDX-License-Identifier: Apache-2.0
# gnuplot -c plot.gp CSV ALGORITHM TITLE NAME [CROSSOVER [UNIT]]: draws the speed over the size of calls from a CSV file of bench
# or afalgctl measure, as NAME.svg and NAME.png; only one of them where NAME ends in .svg or .png. A line marks the CROSSOVER, in
# bytes; 0: none.
csv = ARG1
algorithm = ARG2
sides = "default provider bare afalg devcrypto software kernel"
label(s) = s eq "default" ? "default provider" : s eq "provider" ? "afalgprov" : s eq "bare" ? "bare AF_ALG" : \
  s eq "software" ? "software (OpenSSL)" : s eq "kernel" ? "kernel (AF_ALG)" : "engine ".s

set datafile separator ","
set datafile missing NaN # the rows of other sides do not interrupt a line
# Only sides that the file has are drawn; each keeps its colour in all plots.
rows(s) = system(sprintf("grep -c '^%s,.*,%s,' '%s' || true", algorithm, s, csv)) + 0
present = ""
do for [i = 1:words(sides)] { if (rows(word(sides, i)) > 0) { present = present." ".i } }

set title ARG3
set xlabel "bytes a call"
set ylabel ARGC > 5 ? ARG6 : "MB/s"
set logscale x 2
set logscale y 10
set format x "%.0f"
set grid
set key bottom right opaque
set style data linespoints
speed(a, side, s, v) = a eq algorithm && side eq s ? v : NaN

suffix = strlen(ARG4) > 4 ? ARG4[strlen(ARG4)-3:] : ""
formats = suffix eq ".svg" ? "svg" : suffix eq ".png" ? "png" : "svg png"
name = strlen(formats) == 3 ? ARG4[:strlen(ARG4)-4] : ARG4
if (ARGC > 4 && ARG5 + 0 > 0) {
  set arrow from first ARG5 + 0, graph 0 to first ARG5 + 0, graph 1 nohead dashtype 2 linecolor "gray40"
  marked = "kernel from ".ARG5." bytes on"
  if (ARG5 + 0 < 1024) { set label marked at first ARG5 + 0, graph 0.96 left textcolor "gray40" offset 1,0
  } else { set label marked at first ARG5 + 0, graph 0.96 right textcolor "gray40" offset -1,0 }
}

do for [format in formats] {
  if (format eq "svg") { set terminal svg noenhanced size 800,500 background "white" } else { set terminal pngcairo noenhanced size 800,500 }
  set output name.".".format
  plot for [i in present] csv every ::1 using 2:(speed(strcol(1), strcol(4), word(sides, i + 0), $5)) \
    title label(word(sides, i + 0)) linetype i + 0 linewidth 2
  set output
}
