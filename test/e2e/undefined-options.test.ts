import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { connect } from '../../src/client.ts';
import type {
  ConversationHandle,
  ConversationTracker,
  ExportedConversation,
  SandboxHandle,
  Settings,
  Tasks,
  Throughline,
} from '../../src/index.ts';
import { open } from '../../src/index.ts';
import type { Telemetry } from '../../src/ports/telemetry.ts';
import type { startModel } from '../../src/testing/index.ts';

/*
 * Many users compile with `exactOptionalPropertyTypes`. Then `{ agent: undefined }` is allowed only where the type names undefined, and
 * `chat.ask(text, { agent: flags.agent })` would not compile. So every option says `| undefined`. The compiler checks this file.
 */

/** Values that are not objects of options. */
type Opaque =
  | readonly unknown[]
  | Telemetry
  | AbortSignal
  | Date
  | ExportedConversation
  | Uint8Array
  | ((...args: never[]) => unknown);
/** So deep that a type that contains itself comes to an end. */
type Depth = [never, 0, 1, 2, 3, 4];

/** The paths of options that cannot be undefined; never: all can. */
type Refusing<T, D extends number = 4> = D extends never | 0
  ? never
  : T extends Opaque
    ? never
    : T extends object
      ? { [K in keyof T & string]-?: Of<T, K> | `${K}.${Refusing<Exclude<T[K], undefined>, Depth[D]>}` }[keyof T &
          string]
      : never;

type Of<T, K extends keyof T & string> = string extends K
  ? never
  : Record<never, never> extends Pick<T, K>
    ? { [Name in K]: undefined } extends Pick<T, K>
      ? never
      : K
    : never;

/** The same for all arguments of all methods. */
type OfMethods<T> = {
  [K in keyof T & string]: T[K] extends (...args: infer A) => unknown ? `${K}: ${Refusing<A[number]>}` : never;
}[keyof T & string];

/** Compiles only for never; otherwise the error names the options. */
function allow<_ extends never>(): void {}

allow<Refusing<Parameters<typeof open>[0]>>();
allow<Refusing<Parameters<typeof connect>[0]>>();
allow<Refusing<Parameters<typeof startModel>[0]>>();
allow<Refusing<Settings>>();
allow<OfMethods<Throughline>>();
allow<OfMethods<Throughline['engine']>>();
allow<OfMethods<Throughline['sandboxes']>>();
allow<OfMethods<NonNullable<Throughline['server']>>>();
allow<OfMethods<ConversationHandle>>();
allow<OfMethods<SandboxHandle>>();
allow<OfMethods<Tasks>>();
allow<OfMethods<ConversationTracker>>();
// @ts-expect-error an option that cannot be undefined is found, also in an option
allow<OfMethods<{ ask(text: string, options: { restore?: { rung?: string } | undefined }): void }>>();

/** Every name that the refusal of an unknown option lists, undefined. `any`: the compiler has checked the types above. */
// biome-ignore lint/suspicious/noExplicitAny: see above
async function allUndefined(call: (options: any) => unknown): Promise<any> {
  const error = await Promise.try(async () => {
    const answer = call({ other: 1 });
    if (Symbol.asyncIterator in Object(answer)) await (answer as AsyncGenerator).next();
    else await answer;
  }).catch((refusal: unknown) => refusal);
  const [, names = ''] = /^Known options: (.*)\.$/.exec(Object(error).hint ?? '') ?? [];
  expect(names, `${call}: ${error}`).not.toBe('');
  return Object.fromEntries(names.split(', ').map((name) => [name, undefined]));
}

test('an option that is undefined counts as left out, in every call', async () => {
  const home = mkdtempSync(join(tmpdir(), 'throughline-undefined-'));
  const settings: Settings = {
    agents: { scripted: { adapter: 'scripted', model: undefined } },
    restore: undefined,
  } as Settings;
  const usual = { ...(await allUndefined(open)), engine: { maxWarm: undefined, pollMs: undefined }, home, settings };
  const tl = await open(usual);
  try {
    const spec = await allUndefined((options) => tl.conversation('notes', options));
    const chat = tl.conversation('notes', spec);
    const sending = await allUndefined((options) => chat.ask('Hello.', options));
    const nested = { restore: { rung: undefined, policy: undefined }, limits: { turnSeconds: undefined } };
    const { reply } = await chat.ask('The codeword is amber.', { ...sending, ...nested });
    expect(reply).toBe('Noted: The codeword is amber.');
    const calls: ((options: never) => unknown)[] = [
      (options) => chat.warm(options),
      (options) => chat.turns(options),
      (options) => chat.events(options),
      (options) => chat.restores(options),
      (options) => chat.outline(options),
      (options) => chat.records(options),
      (options) => chat.verify(options),
      (options) => chat.fork(options),
      (options) => tl.conversations(options),
      (options) => tl.search('amber', options),
      (options) => tl.usage(options),
      (options) => tl.agents(options),
      (options) => tl.permissions(options),
      (options) => tl.sandboxes(options),
    ];
    for (const call of calls) await call((await allUndefined(call as never)) as never);
    const following = await allUndefined((options) => chat.follow(options));
    for await (const { kind } of chat.follow({ ...following, signal: undefined })) if (kind === 'turn.ended') break;
  } finally {
    await tl.close({ graceMs: undefined });
    rmSync(home, { recursive: true });
  }
});
