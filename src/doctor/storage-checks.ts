import { asSentence, failureOf, RESTORE_HINT, ThroughlineError } from '../core/errors.ts';
import { LOSS_CAUSE, lossInWords, lostInWords } from '../core/loss.ts';
import type { Finding } from '../ports/doctor.ts';
import { type DoctorParts, NO_REPAIR } from './parts.ts';

// What is stored, and the server that writes it: damage, loss, and what a restore left.

/** The storage's own check, and the conversations that the damage concerns. */
export async function checkFile({ store }: DoctorParts): Promise<Finding[]> {
  const { faults, damaged } = await store.inspect();
  const [first] = faults;
  if (first === undefined) return [];
  const found = { check: 'file', ...NO_REPAIR };
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : '';
  const conversations = damaged.map(({ owner, id, key }) => ({
    ...found,
    subject: `conversation ${key ?? id}${owner === '' || owner === 'local' ? '' : ` of ${owner}`}`,
    problem:
      'A part of its stored data is damaged. Perhaps it cannot be read or continued. Other conversations continue.',
  }));
  const problem = `It is damaged: ${first}${more}. ${RESTORE_HINT} Without one, export what can still be read.`;
  return [{ ...found, subject: 'database', problem }, ...conversations];
}

/** The data itself cannot be opened, so nothing else can be examined. */
export function unopened({ message, hint = '', cause }: ThroughlineError): Finding {
  // The error of SQLite names the fault, our own message does not.
  const why =
    cause instanceof Error ? `It is damaged, and cannot be opened: ${asSentence(cause.message)} ${RESTORE_HINT}` : null;
  const problem = why ?? `${message} ${hint}`.trim();
  return { check: 'file', subject: 'database', problem, ...NO_REPAIR };
}

/** Paths that cannot be written: no turn can run. If a directory is reported, the paths in it are not. */
export async function checkWritable({ written }: DoctorParts): Promise<Finding[]> {
  const found = written.paths.flatMap((path) => {
    const why = written.why(path);
    return why === null ? [] : [{ path, problem: `${why.message} ${why.hint ?? ''}`.trim() }];
  });
  const isIn = (path: string) => found.some((other) => path.startsWith(`${other.path}/`));
  return found
    .filter(({ path }) => !isIn(path))
    .map(({ path, problem }) => ({ check: 'writable', subject: `path ${path}`, problem, ...NO_REPAIR }));
}

/** What does not work in the running server. */
export async function checkServer({ serverHealth }: DoctorParts): Promise<Finding[]> {
  const reasons = await serverHealth().then(
    (health) => health?.reasons ?? [],
    (error: unknown) => {
      if (error instanceof ThroughlineError) return [failureOf(error)];
      throw error;
    },
  );
  // `checkLosses` says more about missing data.
  const others = reasons.filter(({ code }) => code !== 'storage_lost');
  return others.map(({ code, message, hint = '' }) => ({
    check: 'server',
    subject: `running server, ${code}`,
    problem: `${message} ${hint}`.trim(),
    ...NO_REPAIR,
  }));
}

/** Stored data that is missing. The doctor cannot bring it back, so a person decides. */
export async function checkLosses({ store }: DoctorParts): Promise<Finding[]> {
  const found = {
    check: 'losses',
    remedy: 'Stop reporting it.',
    repairedBy: '--accept-loss',
    repair: () => store.acknowledgeLosses(),
  } as const;
  return (await store.losses()).flatMap((loss) => [
    {
      ...found,
      subject: `data, ${new Date(loss.noticedAt).toISOString()}`,
      problem: `${lossInWords(loss)} ${LOSS_CAUSE} Restore a backup that has it, if there is one.`,
    },
    ...loss.conversations.map((lost) => ({
      ...found,
      subject: `conversation ${lost.key ?? lost.conversationId}`,
      problem: lostInWords(lost),
    })),
  ]);
}

/** A killed restore left a copy of the backup. The data was not changed, or was replaced completely. */
export async function checkRestores({ restoreFolders }: DoctorParts): Promise<Finding[]> {
  return (restoreFolders.list() ?? []).map((folder) => ({
    check: 'restores',
    subject: `directory ${folder}`,
    problem: 'A restore was killed and left it. It holds a copy of the backup.',
    remedy: 'Delete it.',
    repair: async () => restoreFolders.remove(folder),
  }));
}

/** A restore was killed while it replaced the data. Nothing else can be examined before it is complete. */
export function unfinishedRestore(backup: string, complete: () => Promise<void>): Finding {
  return {
    check: 'restores',
    subject: `restore of ${backup}`,
    problem:
      'It was killed before its end, so only a part of the data is replaced. The next command that opens the data completes it.',
    remedy: 'Complete it.',
    repair: complete,
  };
}
