import { MARK } from '../../../core/process.ts';
import { word, words } from './machine.ts';

/*
 * Scripts of POSIX sh that start, find and end programs on another Linux machine.
 *
 * The script that starts a program keeps running as its runner. The program leads a session of its own. It has the mark in its
 * environment, and so has everything that it starts. A watchdog ends all of it when `$BEAT` is gone or stays the same for too long, or
 * when the runner is killed. When the program has ended, the runner ends everything that it left, and exits with its code.
 */

/** Ends every process that has the mark. A killed process starts nothing any more: when a look finds none, none is left. */
const END_MARKED = `marked() { grep -lsF -- "${MARK}=$1" /proc/[0-9]*/environ | while IFS=/ read -r a b p c; do echo "$p"; done; }
endmarked() { [ -n "$1" ] || return 0; i=0
while l=$(marked "$1"); [ -n "$l" ]; do
kill -s KILL $l 2>/dev/null; i=$((i + 1)); [ $i -lt 100 ] || return 1; sleep 0.05
done; }
`;

/** Prints when a process started, as the kernel counts it; nothing: there is none, or it is a zombie without threads. */
const STARTED = `nth() { case $1 in [ZX]) [ "\${18}" -gt 1 ] || return 0 ;; esac; shift 19; echo "$1"; }
started() { { read -r s </proc/$1/stat; } 2>/dev/null || return 0; set -f; nth \${s##*") "}; set +f; }
`;

/** Prints the boot id of the machine and its pid namespace. */
const WHERE = `where() { read -r boot </proc/sys/kernel/random/boot_id; echo "$boot $(readlink /proc/self/ns/pid)"; }
`;

/** Prints the path of a program: $1 is a path, or a name that is searched in the absolute folders of $2. */
const FIND = `find_program() { case $1 in
/*) [ ! -f "$1" ] || [ ! -x "$1" ] || printf '%s' "$1" ;;
*/* | '') ;;
*) set -f; IFS=:; for d in $2; do case $d in /*) if [ -f "$d/$1" ] && [ -x "$d/$1" ]; then printf '%s' "$d/$1"; break; fi ;; esac; done; unset IFS; set +f ;;
esac; }
`;

export const findScript = (program: string, path: string) => `${FIND}find_program ${words([program, path])}`;

export interface Started {
  readonly command: readonly string[];
  readonly cwd: string;
  /** The whole environment of the program, except the mark. */
  readonly env: Readonly<Record<string, string>>;
  readonly mark: string;
  /** It is a part of the process that has the mark: when it ends, that one stays. */
  readonly isPart: boolean;
  readonly silenceSeconds: number;
}

/** The first word of the line that comes before the program's own output. */
export const FIRST = { started: 'started', noDirectory: 'no-directory', noProgram: 'no-program' } as const;

export function startScript({ command, cwd, env, mark, isPart, silenceSeconds }: Started): string {
  const [program = '', ...args] = command;
  const exported = Object.entries({ ...env, [MARK]: mark }).map(([name, value]) => `export ${name}=${word(value)}`);
  // The mark is in its environment before it prints this line, so we can find the program again once we have read the line.
  const inner = `${STARTED}${WHERE}echo ${FIRST.started} $$ "$(started $$)" "$(where)"; exec "$@"`;
  return `${END_MARKED}${FIND}trap '' HUP PIPE
sid=$(command -v setsid) || { echo "${FIRST.noProgram} setsid"; exit 127; }
cd -- ${word(cwd)} 2>/dev/null || { echo ${FIRST.noDirectory}; exit 126; }
program=$(find_program ${words([program, env.PATH ?? ''])})
[ -n "$program" ] || { echo ${FIRST.noProgram}; exit 127; }
exec 3<&0 4>&1 5>&2 </dev/null >/dev/null 2>/dev/null
(
${exported.join('\n')}
trap - HUP PIPE
exec "$sid" /bin/sh -c ${word(inner)} sh "$program" ${words(args)} <&3 >&4 2>&5 3<&- 4>&- 5>&-
) &
child=$!
exec 3<&- 4>&- 5>&-
all() { kill -s KILL -- "-$child" 2>/dev/null; ${isPart ? ':' : `endmarked ${word(mark)}`}; }
(
n=0; last=
while sleep 1; do
kill -0 $$ 2>/dev/null || break
now=$(stat -c %y -- "$BEAT" 2>/dev/null) || break
if [ "$now" != "$last" ]; then n=0; last=$now; continue; fi
n=$((n + 1)); [ $n -lt ${silenceSeconds} ] || break
done
all
) &
dog=$!
wait $child; code=$?
kill -s KILL $dog 2>/dev/null
all
exit $code`;
}

/** A process, as it was identified by its first line. */
export interface RemoteIdentity {
  readonly pid: number;
  readonly started: string;
  readonly boot: string;
  readonly namespace: string;
  readonly mark?: string;
}

const LOOK = ({ pid, started, boot, namespace }: RemoteIdentity) => `${STARTED}${WHERE}
set -- $(where)
[ "$2" = ${word(namespace)} ] || [ "$1" != ${word(boot)} ] || { echo unknown; exit; }
[ "$1" = ${word(boot)} ] || { echo over; exit; }
lives() { [ "$(started ${pid})" = ${word(started)} ]; }
`;

/** Prints alive, dead, over (the machine has started again) or unknown. */
export const statusScript = (identity: RemoteIdentity) => `${LOOK(identity)}lives && echo alive || echo dead`;

/** Prints ended, over or unknown. */
export const endScript = (identity: RemoteIdentity) => `${END_MARKED}${LOOK(identity)}
if lives; then kill -s KILL -- -${identity.pid} 2>/dev/null || kill -s KILL ${identity.pid} 2>/dev/null; fi
endmarked ${word(identity.mark ?? '')} || { echo unknown; exit; }
i=0
while lives; do i=$((i + 1)); [ $i -lt 100 ] || { echo unknown; exit; }; sleep 0.05; done
echo ended`;

export const signalScript = (identity: RemoteIdentity, signal: 'TERM' | 'KILL') =>
  `${LOOK(identity)}! lives || kill -s ${signal} -- -${identity.pid}`;

/** Prints pid, time of the start, boot, namespace and mark of each process that has a mark. */
export const markedScript = () => `${STARTED}${WHERE}
w=$(where)
grep -lsF -- "${MARK}=" /proc/[0-9]*/environ | while IFS=/ read -r a b p c; do
m=$(tr '\\0' '\\n' </proc/$p/environ 2>/dev/null | sed -n 's/^${MARK}=//p' | head -n 1)
s=$(started "$p"); [ -z "$m" ] || [ -z "$s" ] || echo "$p $s $w $m"
done`;
