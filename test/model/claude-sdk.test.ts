// The stand-in with the real SDK of Claude: one process that gets several prompts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { acknowledgement, conversationOf } from '../../src/testing/index.ts';
import { type ClaudeLine, claudeEnvironment, claudeOrSkip } from '../agents/support/claude.ts';
import { modelForTests } from './speaking.ts';

const model = modelForTests();
const scratch = mkdtempSync(join(tmpdir(), 'throughline-claude-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What is used of it here. Its types are not imported, because the type check must pass without the package. */
interface Sdk {
  query(request: { prompt: AsyncIterable<object>; options: object }): AsyncGenerator<ClaudeLine> & {
    interrupt(): Promise<unknown>;
  };
}

test('the SDK has a conversation in one process with streaming input', async (context) => {
  const claude = claudeOrSkip(context);
  const sdk = (await import(/* @vite-ignore */ pathToFileURL(claude.sdk).href)) as Sdk;
  const prompts = prompter();
  const query = sdk.query({
    prompt: prompts.messages(),
    options: {
      cwd: mkdtempSync(join(scratch, 'work-')),
      env: claudeEnvironment(model.current, mkdtempSync(join(scratch, 'home-'))),
      settingSources: [],
      includePartialMessages: true,
    },
  });
  /** Sends one prompt. Returns all lines up to its result. */
  const turn = async (text: string, onLine: (line: ClaudeLine) => void = () => {}): Promise<ClaudeLine[]> => {
    prompts.send(text);
    const lines: ClaudeLine[] = [];
    for (;;) {
      const next = await query.next();
      if (next.done) throw new Error(`the SDK ended after ${JSON.stringify(lines.at(-1))}`);
      lines.push(next.value);
      onLine(next.value);
      if (next.value.type === 'result') return lines;
    }
  };

  const first = await turn('The codeword is amber.');
  expect(first.at(-1)?.result).toBe(acknowledgement('The codeword is amber.'));
  const pieces = (await turn('model: stream 5 30ms')).filter(({ event }) => isTextDelta(event));
  expect(pieces).toHaveLength(5);
  const third = await turn('Which codewords have you seen?');
  expect(third.at(-1)?.result).toBe('I have seen these codewords: amber.');
  const request = model.current.lastRequest();
  expect(request && conversationOf(request).map(({ role }) => role)).toEqual([
    ...['user', 'assistant', 'user', 'assistant', 'user'],
  ]);

  // When the agent stops an answer, the stand-in breaks it off as well, and the next prompt is answered.
  let stopped: Promise<unknown> | undefined;
  const cut = await turn('model: stream 1000 100ms', ({ event }) => {
    if (isTextDelta(event)) stopped ??= query.interrupt();
  });
  await stopped;
  expect(cut.at(-1)?.is_error).toBe(true);
  const answer = () => model.current.lastRequest()?.answer;
  await expect.poll(answer).toMatchObject({ broken: true, usage: null });
  expect((await turn('Which codewords have you seen?')).at(-1)?.result).toBe('I have seen these codewords: amber.');
  prompts.end();
  for await (const _ of query);
});

function isTextDelta(event: unknown): boolean {
  return (event as { delta?: { type?: string } } | undefined)?.delta?.type === 'text_delta';
}

/** Turns prompts that are sent one by one into a stream. */
function prompter() {
  const waiting: string[] = [];
  let wake = () => {};
  let ended = false;
  return {
    send(text: string) {
      waiting.push(text);
      wake();
    },
    end() {
      ended = true;
      wake();
    },
    async *messages(): AsyncGenerator<object> {
      for (;;) {
        const text = waiting.shift();
        if (text !== undefined)
          yield { type: 'user', message: { role: 'user', content: text }, parent_tool_use_id: null };
        else if (ended) return;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    },
  };
}
