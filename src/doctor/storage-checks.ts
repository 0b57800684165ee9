import { asSentence, failureOf, RESTORE_HINT, ThroughlineError } from '../core/errors.ts';
import { LOSS_CAUSE, lossInWords, lostInWords } from '../core/loss.ts';
import type { Finding } from '../ports/doctor.ts';
import type { DoctorParts } from './parts.ts';

// What is stored, and the server that writes it: damage, loss, and what a restore left.

/** The storage's own check, and the conversations that a person loses by what it found. */
export async function checkFile({ store }: DoctorParts): Promise<Finding[]> {
  const { faults, damaged } = await store.inspect();
  const [first] = faults;
  if (first === undefined) return [];
  const found = { check: 'file', remedy: null, repair: async () => {} };
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : '';
  const conversations = damaged.map(({ owner, id, key }) => ({
    ...found,
    subject: `conversation ${key ?? id}${owner === '' || owner === 'local' ? '' : ` of ${owner}`}`,
    problem:
      'A part of what is stored of it is damaged. It may not be possible to read or continue it; the others go on.',
  }));
  const problem = `It is damaged: ${first}${more}. ${RESTORE_HINT} Without one, export what can still be read.`;
  return [{ ...found, subject: 'database', problem }, ...conversations];
}

/** The data itself cannot be opened, so nothing else can be examined. */
export function unopened({ message, hint = '', cause }: ThroughlineError): Finding {
  // SQLite says what is wrong, and our own message only that something is.
  const why =
    cause instanceof Error ? `It is damaged, and cannot be opened: ${asSentence(cause.message)} ${RESTORE_HINT}` : null;
  const problem = why ?? `${message} ${hint}`.trim();
  return { check: 'file', subject: 'database', problem, remedy: null, repair: async () => {} };
}

/** Where nothing can be written: no turn can run. Of a directory and what is in it, only the directory is named. */
export async function checkWritable({ written }: DoctorParts): Promise<Finding[]> {
  const found = written.paths.flatMap((path) => {
    const why = written.why(path);
    return why === null ? [] : [{ path, problem: `${why.message} ${why.hint ?? ''}`.trim() }];
  });
  const isIn = (path: string) => found.some((other) => path.startsWith(`${other.path}/`));
  return found
    .filter(({ path }) => !isIn(path))
    .map(({ path, problem }) => ({
      ...{ check: 'writable', subject: `path ${path}`, problem },
      ...{ remedy: null, repair: async () => {} },
    }));
}

/** What does not work in the running server. It takes a reason back when the cause is gone. */
export async function checkServer({ serverHealth }: DoctorParts): Promise<Finding[]> {
  const reasons = await serverHealth().then(
    (health) => health?.reasons ?? [],
    (error: unknown) => {
      if (error instanceof ThroughlineError) return [failureOf(error)];
      throw error;
    },
  );
  // Of what is missing, `checkLosses` says more.
  const others = reasons.filter(({ code }) => code !== 'storage_lost');
  return others.map(({ code, message, hint = '' }) => ({
    check: 'server',
    subject: `running server, ${code}`,
    problem: `${message} ${hint}`.trim(),
    remedy: null,
    repair: async () => {},
  }));
}

/** Stored data that is missing. Nothing brings it back here, so a person decides. */
export async function checkLosses({ store }: DoctorParts): Promise<Finding[]> {
  const found = {
    check: 'losses',
    remedy: 'Accept it: it is no longer reported.',
    repairedBy: '--accept-loss',
    repair: () => store.acceptLosses(),
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

/** What is left of a restore that was killed: a copy of the backup. The data was not changed, or was replaced completely. */
export async function checkRestores({ restoreFolders }: DoctorParts): Promise<Finding[]> {
  return (restoreFolders.list() ?? []).map((folder) => ({
    check: 'restores',
    subject: `directory ${folder}`,
    problem: 'A restore was killed and left it. It holds a copy of what was to be restored.',
    remedy: 'Delete it.',
    repair: async () => restoreFolders.remove(folder),
  }));
}
