#!/usr/bin/env bash
# Public data into the folders where the configs look: scripts/fetch_data.sh NAME... [--from DIR] [--to DIR]
#
#   NAME    adult, polish, arcene, mnist or all
#   --from  take the files from a local folder instead of the network: plain, gzip, or inside UCI's zip files
#   --to    where to put them [default: ./data]
#
# Every file is checked before it gets its name: what is there afterwards is whole and is the published data. A file
# that is already there and right is kept. Needs bash, coreutils, awk and gzip; curl or wget for the network; unzip,
# bsdtar or python3 for zip files.
set -euo pipefail
export LC_ALL=C

say() { printf '%s\n' "$1"; }
warn() { printf 'fetch_data: %s\n' "$1" >&2; }
die() { warn "$1"; exit "${2:-1}"; }
usage() { die "$1; usage: fetch_data.sh adult|polish|arcene|mnist|all... [--from DIR] [--to DIR]" 2; }

# ------------------------------------------------------------------------------------------------ what there is

files() {
    case $1 in
        adult) echo adult.data adult.test ;;
        polish) echo 3year.arff ;;
        arcene) echo arcene_train.data arcene_train.labels arcene_valid.data arcene_valid.labels ;;
        mnist) echo train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte ;;
    esac
}

# Places to try in turn: files, or zip files that hold them.
addresses() {
    local uci=https://archive.ics.uci.edu
    local old=$uci/ml/machine-learning-databases
    case $1/$2 in
        adult/*) echo "$uci/static/public/2/adult.zip $old/adult/$2" ;;
        polish/*) echo "$uci/static/public/365/polish+companies+bankruptcy+data.zip $old/00365/data.zip" ;;
        arcene/arcene_valid.labels) echo "$uci/static/public/167/arcene.zip $old/arcene/$2" ;;
        arcene/*) echo "$uci/static/public/167/arcene.zip $old/arcene/ARCENE/$2" ;;
        mnist/*)
            echo "https://ossci-datasets.s3.amazonaws.com/mnist/$2.gz" \
                "https://storage.googleapis.com/cvdf-datasets/mnist/$2.gz" \
                "https://raw.githubusercontent.com/fgnt/mnist/master/$2.gz" \
                "http://yann.lecun.com/exdb/mnist/$2.gz"
            ;;
    esac
}

# Names that a browser gives to UCI's zip files.
zips() {
    case $1 in
        polish) echo "polish+companies+bankruptcy+data.zip data.zip" ;;
        *) echo "$1.zip" ;;
    esac
}

# SHA-256 of the content, or of its canonical form.
digest() {
    case $1 in
        adult.data) echo 5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d ;;
        adult.test) echo a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05 ;;
        3year.arff) echo 00e5543d53ab84aada82cad781c40acfcfaa6f03375ee351dc341edd6072ee9b ;;
        arcene_train.data) echo c150722504764b89be541a2166a4ad23b327811a390134455f1648968d2d658b ;;
        arcene_train.labels) echo 434bb813ff7e69d182eeed347f77bd4981917d6233efedd01b5f6d916c282fbe ;;
        arcene_valid.data) echo 994575f5060fdd8fcfcb71c946b501f1f9faf2b4d99e58508c809fc3fc05f875 ;;
        arcene_valid.labels) echo b591228155de082dd39b2e85b12b75a55bd8ca057b7e1c0d7f54683d0a594fc3 ;;
        train-images-idx3-ubyte) echo ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db ;;
        train-labels-idx1-ubyte) echo 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5 ;;
        t10k-images-idx3-ubyte) echo 0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7 ;;
        t10k-labels-idx1-ubyte) echo ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2 ;;
    esac
}

# UCI's own 3year.arff, known by its digest.
UCI_3YEAR=662617d2f90bfd17223595e50a0ac7007f9ee7915cfb519dee0422b31dd13ebc

# ------------------------------------------------------------------------------------------------ canonical forms

# Values without their layout: copies of Arcene differ in blanks at the ends of rows.
canonical_arcene() { tr -d '\r' | awk 'NF { $1 = $1; print }'; }

# Copies of 3year.arff differ in 21 cells below 1e-6: some keep ten decimals, so they are off by up to 5e-11. Such cells
# are counted in whole 1e-8; the nearest of the 21 to the edge between two counts is -7.45e-8, ten times as far from
# it as it can be off. All other cells count as written.
canonical_polish() {
    tr -d '\r' | awk -F, -v OFS=, '
        !data { sub(/[ \t]+$/, ""); if ($0 != "") print; data = (tolower($0) ~ /^@data/); next }
        NF {
            for (i = 1; i <= NF; i++)
                if ($i != "?" && $i + 0 < 1e-6 && $i + 0 > -1e-6)
                    $i = sprintf("%d", $i * 1e8 + ($i < 0 ? -0.5 : 0.5))
            print
        }'
}

canonical() {
    case $1 in
        arcene_*) canonical_arcene ;;
        3year.arff) canonical_polish ;;
        *) cat ;;
    esac
}

# Counts that can be compared with the published ones, to say what is wrong with a file that is refused.
facts() {
    case $1 in
        arcene_*.data) awk '{ rows += (NF > 0); for (i = 1; i <= NF; i++) sum += $i }
            END { printf "%d rows, sum of all entries %d", rows, sum }' ;;
        arcene_*.labels) awk '{ ones += ($1 == 1); minus += ($1 == -1) } END { printf "%d times 1, %d times -1", ones, minus }' ;;
        3year.arff) awk -F, 'NF == 65 { rows++; ones += ($65 + 0 == 1); for (i = 1; i <= 64; i++) gaps += ($i == "?") }
            END { printf "%d rows, %d positive, %d missing cells", rows, ones, gaps }' ;;
        *) printf '%d bytes' "$(wc -c)" ;;
    esac
}

published() {
    case $1 in
        adult.data) echo "3974305 bytes" ;;
        adult.test) echo "2003153 bytes" ;;
        3year.arff) echo "10503 rows, 495 positive, 9888 missing cells" ;;
        arcene_train.data) echo "100 rows, sum of all entries 70726744" ;;
        arcene_valid.data) echo "100 rows, sum of all entries 71410108" ;;
        arcene_*.labels) echo "44 times 1, 56 times -1" ;;
        train-images-*) echo "47040016 bytes" ;;
        train-labels-*) echo "60008 bytes" ;;
        t10k-images-*) echo "7840016 bytes" ;;
        t10k-labels-*) echo "10008 bytes" ;;
    esac
}

# ------------------------------------------------------------------------------------------------ one file

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d' ' -f1; }

magic() { od -An -tx1 -N4 "$1" | tr -d ' \n'; }

# A member of a zip file, whatever folder it is in there.
unpack() {
    if command -v unzip >/dev/null; then
        unzip -p "$1" "*$2"
    elif command -v bsdtar >/dev/null; then
        bsdtar -xOf "$1" "*$2"
    else
        python3 -c 'import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
member = [name for name in archive.namelist() if name.endswith(sys.argv[2])][0]
sys.stdout.buffer.write(archive.read(member))' "$1" "$2"
    fi
}

# The content of a file that is plain, gzip, or a zip file with the wanted file in it.
content() {
    case $(magic "$1") in
        1f8b*) gzip -cd "$1" ;;
        504b0304) unpack "$1" "$2" ;;
        *) cat "$1" ;;
    esac
}

# Nothing if the file is what was published; otherwise what is wrong with it.
fault() {
    local found
    found=$(content "$1" "$2" 2>/dev/null | canonical "$2" | sha256) || {
        echo "cannot be read: damaged, or not in the archive"
        return
    }
    if [ "$found" = "$(digest "$2")" ]; then return; fi
    if [ "$2" = 3year.arff ] && [ "$(content "$1" "$2" | sha256)" = "$UCI_3YEAR" ]; then return; fi
    echo "is not the published file: $(content "$1" "$2" | tr -d '\r' | facts "$2"), published $(published "$2"); SHA-256 $found, expected $(digest "$2")"
}

# Puts a good file in its place: gzip stays as it is, the rest is compressed, except for the small files of labels.
place() {
    local source=$1 file=$2 target=$3/$2
    if [[ $file == *.labels ]]; then
        content "$source" "$file"
    elif [[ $(magic "$source") == 1f8b* ]]; then
        target+=.gz
        cat "$source"
    else
        target+=.gz
        content "$source" "$file" | gzip -9 -n
    fi >"$work/ready"
    mv "$work/ready" "$target"
    say "$target: from $4"
}

download() {
    if command -v curl >/dev/null; then
        curl -fsSL --retry 2 --connect-timeout 30 -o "$2" "$1"
    elif command -v wget >/dev/null; then
        wget -q --tries=3 --timeout=30 -O "$2" "$1"
    else
        die "neither curl nor wget is installed; fetch $1 by other means and use --from"
    fi
}

# Local files to try.
candidates() {
    local name path
    for name in "$2.gz" "$2" $(zips "$1"); do
        for path in "$from/$1/$name" "$from/$name"; do
            if [ -f "$path" ]; then printf '%s\n' "$path"; fi
        done
    done
}

fetch() {
    local set=$1 file=$2 target=$to/$1 path why address part tried=0
    for path in "$target/$file.gz" "$target/$file"; do
        if [ -e "$path" ]; then
            why=$(fault "$path" "$file")
            if [ -n "$why" ]; then die "$path $why; move it away and try again"; fi
            say "$path: there already"
            return
        fi
    done
    mkdir -p "$target"
    if [ -n "$from" ]; then
        while IFS= read -r path; do
            tried=1
            why=$(fault "$path" "$file")
            if [ -z "$why" ]; then
                place "$path" "$file" "$target" "$path"
                return
            fi
            warn "$path: $file $why"
        done < <(candidates "$set" "$file")
        if [ "$tried" = 0 ]; then die "$from has no $set/$file, $file.gz or $(zips "$set")"; fi
        die "$file: no good copy in $from; nothing was written"
    fi
    for address in $(addresses "$set" "$file"); do
        # One zip file serves all files of a set; it has its name once it is whole.
        part=$work/${address//[^A-Za-z0-9.]/_}
        if [ ! -e "$part" ]; then
            if ! download "$address" "$work/part"; then
                warn "$address: no answer, or not to its end"
                continue
            fi
            mv "$work/part" "$part"
        fi
        why=$(fault "$part" "$file")
        if [ -z "$why" ]; then
            place "$part" "$file" "$target" "$address"
            return
        fi
        warn "$address: $file $why"
    done
    die "$file: no good copy at any known address; nothing was written. Fetch it by other means and use --from"
}

# ------------------------------------------------------------------------------------------------ the command

names=() from='' to=data
while [ $# -gt 0 ]; do
    case $1 in
        adult | polish | arcene | mnist) names+=("$1") ;;
        all) names+=(adult polish arcene mnist) ;;
        --from | --to)
            if [ $# -lt 2 ] || [ -z "$2" ]; then usage "$1 needs a folder"; fi
            if [ "$1" = --from ]; then from=$2; else to=$2; fi
            shift
            ;;
        -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
        *) usage "unknown argument \`$1'" ;;
    esac
    shift
done
if [ ${#names[@]} = 0 ]; then usage "no data set is named"; fi
if [ -n "$from" ] && [ ! -d "$from" ]; then die "$from: no such folder" 2; fi

mkdir -p "$to"
# Inside the target: a rename within one file system is whole or not at all.
work=$(mktemp -d "$to/.fetch.XXXXXX")
trap 'rm -rf "$work"; rmdir "${names[@]/#/$to/}" "$to" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM HUP

for name in "${names[@]}"; do
    for file in $(files "$name"); do fetch "$name" "$file"; done
done
