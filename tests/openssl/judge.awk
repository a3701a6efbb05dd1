# SPDX-License-Identifier: Apache-2.0
# For evp_test.sh: is the outcome that of the default provider, and has the kernel worked where, and only where, it may?
#
#   awk -v policy=POLICY -v all_files=0|1 -v differ=FILE -f judge.awk part=names FILE part=list FILE part=data FILE... \
#       part=log FILE...
#
# names: openssl list. list: afalgctl list. data: the data files that evp_test was given. log: what evp_test and, in
# those of ours, afalgctl stats said about each: NAME.txt.default and NAME.txt.ours, ending with a line "status N".
# Names of data files with another outcome go to the file `differ`. Exit status 1: something is wrong. 77: nothing is,
# but this kernel serves nothing, so that policy "kernel" proves nothing.

function group_of(name) { return group[toupper(name)] }
# One algorithm of OpenSSL, such as a MAC, may be several of ours, one for each digest, that begin with its name.
function family_of(name) {
	while (!group_of(name) && sub(/-[^-]*$/, "", name))
		;
	return group_of(name)
}
# Bytes of a message that need not stay in software: ECB has runs of 64 (provider/cipher/mode.c), CTS keeps two blocks.
function least(name) { return name ~ /-ECB$/ ? 64 : name ~ /-CTS$/ ? 48 : 1 }
function bad(text) { wrong[++wrongs] = text }
function shown(file, lane) { return ((file, lane) in completed) ? completed[file, lane] : "did not end" }

# Names of one algorithm form a group: afalgctl prints one of them, the data files use another.
part == "names" && / @ afalgprov$/ {
	gsub(/[{},]/, " ")
	for (i = 1; i <= NF - 2; i++)
		group[toupper($i)] = FNR
}

part == "list" && header && $3 != "-" {
	served[++n] = $1
	if (/ open from [0-9]+ bytes/)
		open[$1]
}
part == "list" && $1 == "ALGORITHM" { header = 1 }

# The longest message that a data file has for an algorithm.
part == "data" && /^(Cipher|Digest|MAC|RAND) *=/ { of = group_of($3) }
part == "data" && of && /^(Plaintext|Ciphertext|Input) *=/ && length($3) / 2 > longest[of] {
	longest[of] = length($3) / 2
}
part == "data" && /^$/ { of = 0 }

part == "log" && FNR == 1 {
	file = FILENAME
	sub(/.*\//, "", file)
	lane = file
	sub(/.*\./, "", lane)
	sub(/\.[a-z]*$/, "", file)
	if (lane == "ours")
		names[++files] = file
}
part == "log" && / Completed [0-9]+ tests with / { completed[file, lane] = $3 "/" $6 "/" $9 }
part == "log" && /^status / { outcome[file, lane] = outcome[file, lane] $0 " " completed[file, lane] }
# A stanza that failed or was skipped, by its line.
part == "log" && match($0, /[a-z0-9_]+\.txt:[0-9]+/) {
	outcome[file, lane] = outcome[file, lane] substr($0, RSTART, RLENGTH) " "
}
part == "log" && /^afalgctl: no process loaded afalgprov/ { bad(file ": the module was not loaded") }
# A row of afalgctl stats. "(N direct)" is none.
part == "log" && NF == 8 && $1 ~ /^[A-Z]/ && ($2 $3 $4 $5 $6 $7) ~ /^[0-9]+$/ {
	counted[$1]
	requests[$1] += $4
	bytes[$1] += $5
	fallbacks[$1] += $6
	errors[$1] += $7
	of_file[file] += $4
}

END {
	printf "policy %s; tests/errors/skipped:\n", policy
	printf "%-24s %14s %14s %16s\n", "FILE", "DEFAULT", "OURS", "KERNEL REQUESTS"
	for (i = 1; i <= files; i++) {
		file = names[i]
		printf "%-24s %14s %14s %16d\n", file, shown(file, "default"), shown(file, "ours"), of_file[file]
		if (outcome[file, "default"] != outcome[file, "ours"]) {
			bad(file ": the outcome is not that of the default provider")
			print file >differ
		}
		if (!((file, "ours") in completed))
			bad(file ": evp_test did not come to its end")
	}
	if (files == 0)
		bad("no data files")
	for (a in counted) {
		sum += requests[a]
		if (errors[a] > 0)
			bad(a ": " errors[a] " errors of the kernel reached evp_test")
		if (requests[a] > 0 && (policy == "software" || policy != "kernel" && !(a in open)))
			bad(a ": " requests[a] " requests to the kernel")
	}
	if (policy == "kernel" && n > 0) {
		printf "\n%-24s %14s %14s %16s\n", "ALGORITHM", "REQUESTS", "BYTES", "FALLBACKS"
		for (i = 1; i <= n; i++)
			worked[family_of(served[i])] += requests[served[i]]
		for (i = 1; i <= n; i++) {
			a = served[i]
			family = family_of(a)
			tried = least(a) == 1 && a in counted || !worked[family] && longest[family] >= least(a)
			if (requests[a] > 0)
				printf "%-24s %14d %14d %16d\n", a, requests[a], bytes[a], fallbacks[a]
			else if (tried && all_files)
				bad(a ": the kernel serves it and evp_test tried it, but the kernel has not worked")
			else
				idle = idle " " a
		}
		if (sum == 0)
			bad("the kernel has not worked at all")
		if (idle)
			print "not tried, or with short messages only:" idle
	}
	for (i = 1; i <= wrongs; i++)
		print "FAILED: " wrong[i]
	if (wrongs > 0)
		exit 1
	if (policy == "kernel" && n == 0) {
		print "this kernel serves nothing: only the software lane was tested"
		exit 77
	}
}
