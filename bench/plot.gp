# SPDX-License-Identifier: Apache-2.0
# gnuplot -c plot.gp CSV ALGORITHM TITLE NAME: draws the speed over the size of calls from a CSV file of bench, as
# NAME.svg and NAME.png.
csv = ARG1
algorithm = ARG2
sides = "default provider bare afalg devcrypto"
label(s) = s eq "default" ? "default provider" : s eq "provider" ? "afalgprov" : s eq "bare" ? "bare AF_ALG" : "engine ".s
mine(a, s) = a eq algorithm && strcol(4) eq s

set datafile separator ","
# Only sides that the file has get a line and a place in the key.
present = ""
do for [s in sides] {
  stats csv using (mine(strcol(1), s) ? $5 : NaN) every ::1 name "S" nooutput
  if (S_records > 0) { present = present." ".s }
}

set title ARG3
set xlabel "bytes a call"
set ylabel "MB/s"
set logscale x 2
set logscale y 10
set format x "%.0f"
set grid
set key bottom right
set style data linespoints

do for [format in "svg png"] {
  if (format eq "svg") { set terminal svg size 800,500 background "white" } else { set terminal pngcairo size 800,500 }
  set output ARG4.".".format
  plot for [s in present] csv using (mine(strcol(1), s) ? $2 : NaN):5 every ::1 title label(s) linewidth 2
  set output
}
