import { word, words } from './machine.ts';

/*
 * Scripts of POSIX sh that use files in a folder where an agent may create links at any moment.
 *
 * A script first goes to the folder of the file (`cd`), and reads its real path (`pwd -P` as a program). If this is not the path that was
 * asked for, a link was on the way. The rest uses names in the current folder, which nobody can redirect. A file is opened first, and then
 * compared with the file of that name: the same device and inode mean that no link was followed.
 */

/** The exit codes of scripts that could not do their work. `notThis`: a folder instead of a file, or the other way round. */
export const EXIT = { missing: 10, link: 11, notThis: 12, denied: 13, exists: 14, tooMany: 15 } as const;

/** Raw mode, device, inode, size, times of the change and of the inode. */
const STAT_FORMAT = '%f %d %i %s %y|%z';
const STAT = `stat -c '${STAT_FORMAT}'`;

const COMMON = `LC_ALL=C; export LC_ALL; umask 077
here() { [ "$(env pwd -P; echo .)" = "$1
." ]; }
why() { p=$2
while [ -n "$p" ] && [ "$p" != "$1" ]; do [ ! -L "$p" ] || exit ${EXIT.link}; p=\${p%/*}; done
[ ! -d "$2" ] || { [ -x "$2" ] && exit ${EXIT.link}; exit ${EXIT.denied}; }
[ ! -e "$2" ] || exit $3
exit ${EXIT.missing}; }
enter() { cd -- "$2" 2>/dev/null && here "$2" || why "$1" "$2" "$3"; }
there() { [ -e "$1" ] || [ -L "$1" ] || exit ${EXIT.missing}; }
plain() { [ ! -L "$1" ] || exit ${EXIT.link}; [ -f "$1" ] || exit ${EXIT.notThis}; }
`;

/** Opens a file as descriptor 3, but no link; its stat is in $s. Tries again if the file was replaced at this moment. */
const OPEN = `same() { [ "$2 $3" = "$(stat -c '%d %i' -- "$n" 2>/dev/null)" ]; }
i=0
while :; do there "$n"; plain "$n"
exec 3<"$n"
s=$(stat -L -c '${STAT_FORMAT}' /proc/self/fd/3) || exit 1
! same $s || break
i=$((i + 1)); [ $i -lt 50 ] || exit ${EXIT.link}
done
`;

/** Creates the folders on the way to a file, and goes there. */
const MAKE = `make() { r=$1; m=$2; shift 2
[ -d "$r" ] || mkdir -p -- "$r" || exit ${EXIT.denied}
cd -- "$r" && here "$r" || exit ${EXIT.link}
for c; do
said=$(umask 0; mkdir -m "$m" -- "./$c" 2>&1); r=$r/$c
if cd -- "./$c" 2>/dev/null && here "$r"; then continue; fi
[ ! -L "$r" ] || exit ${EXIT.link}
[ ! -d "$r" ] || exit ${EXIT.link}
[ ! -e "$r" ] || exit ${EXIT.notThis}
echo "$said" >&2; exit ${EXIT.denied}
done; }
`;

export interface At {
  readonly root: string;
  /** The folder that it is in, and its name there. */
  readonly folder: string;
  readonly name: string;
}

const inFolder = ({ root, folder, name }: At) =>
  `${COMMON}n=${word(`./${name}`)}\nenter ${words([root, folder, EXIT.missing])}\n`;

export const statScript = (at: At) => `${inFolder(at)}there "$n"\n${STAT} -- "$n" || { there "$n"; exit 1; }`;

export const statRootScript = (root: string) => `${COMMON}n=${word(root)}\nthere "$n"\n${STAT} -L -- "$n"`;

/** Prints the stat as one line, then the bytes. */
export const readScript = (at: At, from: number, most: number) => `${inFolder(at)}${OPEN}
set -- $s; size=$4; from=${from}; most=${most}; left=$((size - from))
echo "$s"; [ $left -gt $most ] || most=$left
[ $most -gt 0 ] || exit 0
if [ $from -gt 0 ]; then tail -c +$((from + 1)) <&3 | head -c $most; else head -c $most <&3; fi`;

/** Prints the kind as a letter and the name of each entry, with a zero byte after it. */
export const listScript = (
  root: string,
  folder: string,
  most: number,
) => `${COMMON}enter ${words([root, folder, EXIT.notThis])}
i=0
for f in * .[!.]* ..?*; do
if [ -L "$f" ]; then k=l; elif [ -d "$f" ]; then k=d; elif [ -f "$f" ]; then k=f; elif [ -e "$f" ]; then k=o; else continue; fi
i=$((i + 1)); [ $i -le ${most} ] || exit ${EXIT.tooMany}
printf '%s%s\\0' "$k" "$f"
done`;

export const roomScript = (root: string, folder: string) => `${COMMON}enter ${words([root, folder, EXIT.notThis])}
[ -w . ] && [ -x . ] && echo writable || echo fixed
df -Pk . | tail -n 1`;

interface Written extends At {
  readonly temporary: string;
  readonly mode: number;
  readonly folderMode: number;
}

const octal = (mode: number) => mode.toString(8).padStart(4, '0');

/** Writes the input under a temporary name. `$n`: the file's own. */
const writing = ({ root, folder, name, temporary, mode, folderMode }: Written) => `${COMMON}${MAKE}
n=${word(`./${name}`)}; t=${word(`./${temporary}`)}; mode=${octal(mode)}
make ${words([root, octal(folderMode), ...folder.slice(root.length).split('/').filter(Boolean)])}
trap 'rm -f -- "$t"' EXIT
`;
const WRITE = `set -C; exec 3>"$t" || exit ${EXIT.denied}; set +C
chmod "$mode" /proc/self/fd/3 || exit ${EXIT.denied}
cat >&3 || exit ${EXIT.denied}
exec 3>&-
`;

export const putScript = (file: Written) => `${writing(file)}${WRITE}
said=$(link "$t" "$n" 2>&1) && exit 0
if [ -e "$n" ] || [ -L "$n" ]; then plain "$n"; exit ${EXIT.exists}; fi
echo "$said" >&2; exit ${EXIT.denied}`;

export const replaceScript = (file: Written) => `${writing(file)}
if [ -e "$n" ] || [ -L "$n" ]; then plain "$n"; mode=$(stat -c %a -- "$n") || exit ${EXIT.link}
while [ \${#mode} -gt 3 ]; do mode=\${mode#?}; done; fi
${WRITE}
mv -fT -- "$t" "$n" || exit ${EXIT.denied}`;

export const appendScript = (at: At) => `${inFolder(at)}${OPEN}
cat >>/proc/self/fd/3 || exit ${EXIT.denied}`;

export const removeScript = (at: At) => `${inFolder(at)}
[ -L "$n" ] || [ ! -d "$n" ] || exit ${EXIT.notThis}
rm -f -- "$n" || exit ${EXIT.denied}`;
