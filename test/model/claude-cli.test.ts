// The stand-in with the real program of Claude: what tests use it for, and the failures that it must produce.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, type TestContext, test } from 'vitest';
import { acknowledgement, conversationOf } from '../../src/testing/index.ts';
import { claudeEnvironment, claudeOrSkip, runClaude } from '../agents/support/claude.ts';
import { modelForTests } from './speaking.ts';

const model = modelForTests();
const scratch = mkdtempSync(join(tmpdir(), 'throughline-claude-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A new home and working directory, and the requests to the model since then. */
function place(context: TestContext) {
  const claude = claudeOrSkip(context);
  const home = mkdtempSync(join(scratch, 'home-'));
  const cwd = mkdtempSync(join(scratch, 'work-'));
  const before = model.current.requests.length;
  return {
    cwd,
    run: (prompt: string, args: readonly string[] = [], more: Record<string, string> = {}) =>
      runClaude(claude, [prompt, ...args], { cwd, env: { ...claudeEnvironment(model.current, home), ...more } }),
    requests: () => model.current.requests.slice(before).filter(({ side }) => !side),
  };
}

describe('Claude on the command line', () => {
  test('gets its answer; a resumed history arrives in order with roles, not in the system prompt', async (context) => {
    const { run, requests } = place(context);
    const prompt = 'The codeword is amber.';
    const first = await run(prompt);
    expect(first.result).toMatchObject({ is_error: false, result: acknowledgement(prompt) });

    const second = await run('Which codewords have you seen?', ['--resume', first.result.session_id ?? '']);
    expect(second.result.result).toBe('I have seen these codewords: amber.');
    expect(second.result.session_id).toBe(first.result.session_id);
    expect(requests().map(conversationOf).at(-1)).toEqual([
      { role: 'user', text: prompt },
      { role: 'assistant', text: acknowledgement(prompt) },
      { role: 'user', text: 'Which codewords have you seen?' },
    ]);
    expect(requests().every(({ system }) => system.length > 1_000 && !system.includes('amber'))).toBe(true);
  });

  test('runs the tool that the model calls, once, and reports the usage that was served', async (context) => {
    const { run, requests, cwd } = place(context);
    const call = JSON.stringify({ command: 'echo The codeword is birch. | tee -a effects.txt', description: 'Count' });
    const prompt = `model: tool Bash ${call}\nWhich codewords have you seen?`;
    const { result } = await run(prompt, ['--allowedTools', 'Bash']);
    expect(result.result).toBe('I have seen these codewords: birch.');
    expect(readFileSync(join(cwd, 'effects.txt'), 'utf8')).toBe('The codeword is birch.\n');
    const [asked, answered] = requests();
    expect(requests()).toHaveLength(2);
    expect(asked?.tools).toContain('Bash');
    expect(answered?.messages.flatMap(({ toolResults }) => toolResults)).toMatchObject([{ isError: false }]);
    const served = requests().map(({ answer }) => answer?.usage?.inputTokens ?? 0);
    expect(result.usage?.input_tokens).toBe(served.reduce((sum, tokens) => sum + tokens, 0));
  });

  test('retries after failures, and continues', async (context) => {
    const { run, requests } = place(context);
    const { lines, result } = await run('model: fail 529 2 times #cli\nmodel: say Here I am.');
    expect(lines.filter(({ subtype }) => subtype === 'api_retry')).toHaveLength(2);
    expect(requests().map(({ answer }) => answer?.status)).toEqual([529, 529, 200]);
    expect(result).toMatchObject({ is_error: false, result: 'Here I am.' });
  });

  test('reports a final failure in its result, not in the subtype', async (context) => {
    const { run, requests } = place(context);
    const { code, lines, result } = await run('model: fail 529', [], { CLAUDE_CODE_MAX_RETRIES: '2' });
    expect(lines.filter(({ subtype }) => subtype === 'api_retry')).toHaveLength(2);
    expect(requests()).toHaveLength(3);
    expect(code).toBe(1);
    expect(result).toMatchObject({ subtype: 'success', is_error: true, terminal_reason: 'api_error' });
  });

  test('retracts the part of an answer that broke off, and sends the request again', async (context) => {
    const { run, requests } = place(context);
    const prompt = 'model: stream 4 200ms\nmodel: break 1 times #cli';
    const { lines, result } = await run(prompt, ['--include-partial-messages']);
    expect(result).toMatchObject({ is_error: false, result: 'chunk 1 chunk 2 chunk 3 chunk 4 ' });
    // If Claude was busy and had not read the beginning when the stream broke off, it has nothing to retract.
    const begun = lines.filter((line) => JSON.stringify(line).includes('"text":"chunk 1 "'));
    const abandoned = { abandoned_blocks: { from_block_index: 0 } };
    expect(lines.filter((line) => 'abandoned_blocks' in line)).toMatchObject(begun.length === 2 ? [abandoned] : []);
    expect(requests().map(({ answer }) => answer?.broken)).toEqual([true, false]);
  });

  test('reports that the prompt is too long', async (context) => {
    const { code, result } = await place(context).run('model: too-long');
    expect(code).toBe(1);
    expect(result).toMatchObject({ is_error: true, terminal_reason: 'prompt_too_long' });
  });
});
