import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ThroughlineError } from '../../core/errors.ts';

/*
 * Calls of podman or docker. Our code and the settings decide their arguments. Only the command of a program comes from an agent; it stands
 * after all options that the engine reads.
 */

export type EngineName = 'podman' | 'docker';

const run = promisify(execFile);
const CALL_MS = 60_000;
const MOST_BYTES = 2 ** 22;
const GONE_MS = 30_000;

const ALLOWED = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'TMPDIR',
  'DBUS_SESSION_BUS_ADDRESS',
  'REGISTRY_AUTH_FILE',
]);
const ALLOWED_BEGINNINGS = ['XDG_', 'CONTAINER', 'DOCKER_'];

/** The variables by which the engine finds its storage and its daemon. None of them reaches a container. */
export function engineEnvironment(): Record<string, string> {
  const ours = Object.entries(process.env).filter(
    ([name]) => ALLOWED.has(name) || ALLOWED_BEGINNINGS.some((beginning) => name.startsWith(beginning)),
  );
  return { ...Object.fromEntries(ours.map(([name, value]) => [name, value ?? ''])), LC_ALL: 'C' };
}

/** Rejects with `code` and `stderr` when it fails. */
export async function call(engine: EngineName, words: readonly string[]): Promise<string> {
  const options = { env: engineEnvironment(), cwd: '/', timeout: CALL_MS, maxBuffer: MOST_BYTES };
  const { stdout } = await run(engine, [...words], options);
  return stdout;
}

/** Why a call of an engine failed. */
export function failureText(error: unknown): string {
  const { stderr = '', message } = error as { stderr?: string; message: string };
  return (stderr.trim() || message).slice(0, 2_000);
}

/**
 * Every container has a label with the mark of its program; a part of another program has a second one with its own id. An agent cannot
 * change the labels of its container.
 */
export const MARK_LABEL = 'throughline.mark';
export const PART_LABEL = 'throughline.part';

/** The ids of the containers that have a label, with its value or with any; also those that do not run. */
export async function labelled(
  engine: EngineName,
  label: string,
  options: { readonly isRunning?: boolean } = {},
): Promise<string[]> {
  const which = options.isRunning ? [] : ['--all'];
  const out = await call(engine, ['ps', '--quiet', '--no-trunc', ...which, '--filter', `label=${label}`]);
  return out.split('\n').filter((line) => line !== '');
}

/** The marks of all containers that have one. */
export async function marksOf(engine: EngineName): Promise<Set<string>> {
  const format = `{{index .Config.Labels "${MARK_LABEL}"}}`;
  const marks = (await labelled(engine, MARK_LABEL)).map(async (id) => {
    try {
      return (await call(engine, ['inspect', '--format', format, id])).trim();
    } catch {
      return ''; // it is gone by now
    }
  });
  return new Set((await Promise.all(marks)).filter((mark) => mark !== ''));
}

/** Ends the containers that have a label, and removes them. Throws when one is still there after a while. */
export async function removeLabelled(engine: EngineName, label: string): Promise<void> {
  const deadline = performance.now() + GONE_MS;
  let failure: unknown = null;
  for (let pause = 20; ; pause = Math.min(pause * 2, 500)) {
    const found = await labelled(engine, label);
    if (found.length === 0) return;
    if (performance.now() > deadline) {
      const why = failure === null ? 'they are still there' : failureText(failure);
      throw new ThroughlineError('refused', `Cannot end the containers with the label ${label}: ${why}.`, {
        hint: `List them with "${engine} ps --all --filter label=${MARK_LABEL}".`,
      });
    }
    const now = engine === 'podman' ? ['--time', '0'] : [];
    // It may be removing itself at the same time: what counts is whether it is still there.
    failure = await call(engine, ['rm', '--force', ...now, ...found]).then(
      () => null,
      (error: unknown) => error,
    );
    if (failure !== null) await delay(pause);
  }
}
