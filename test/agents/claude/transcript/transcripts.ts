// Transcripts that tests write for the real Claude, and the messages that the model gets of them.
import { mkdirSync, mkdtempSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { isWhole } from '../../../../src/agents/claude/transcript/chain.ts';
import { blocksOf, type Entry } from '../../../../src/agents/claude/transcript/entries.ts';
import { projectDir } from '../../../../src/agents/claude/transcript/locate.ts';
import { TranscriptReader } from '../../../../src/agents/claude/transcript/reader.ts';
import { synthesise } from '../../../../src/agents/claude/transcript/synthesise.ts';
import { putTranscript } from '../../../../src/agents/claude/transcript/write.ts';
import type { ToolPart, TurnRecord } from '../../../../src/core/turn/record.ts';
import type { Model, ModelRequest } from '../../../../src/testing/index.ts';
import { transcriptAt } from '../../../contracts/transcript-file.ts';
import { type ClaudeRun, claudeEnvironment, claudeOrSkip, runClaude } from '../../support/claude.ts';

/** A session of Claude in its own home and working directory. It exists as soon as its file is written, or Claude is run. */
export interface ClaudeSetup {
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly id: string;
  /** The transcript of the session `id`. */
  readonly file: string;
  /** Runs `claude -p` with this prompt and these arguments. */
  run(prompt: string, args?: readonly string[]): Promise<ClaudeRun>;
  /** Resumes the session. `request`: the last request to the model; undefined: there was none. */
  resume(prompt: string, args?: readonly string[]): Promise<{ run: ClaudeRun; request: ModelRequest | undefined }>;
}

/** Makes a home, a working directory and a session id. */
export function claudeSetup(
  context: TestContext,
  model: Model,
  scratch: string,
  { directory = 'work', variables = {} }: { directory?: string; variables?: Record<string, string> } = {},
): ClaudeSetup {
  const claude = claudeOrSkip(context);
  const root = realpathSync(mkdtempSync(join(scratch, 'setup-')));
  const cwd = join(root, directory);
  mkdirSync(cwd, { recursive: true });
  const env = { ...claudeEnvironment(model, join(root, 'home')), ...variables };
  mkdirSync(join(root, 'home'));
  const id = crypto.randomUUID();
  const run = (prompt: string, args: readonly string[] = []) => runClaude(claude, [prompt, ...args], { cwd, env });
  return {
    cwd,
    env,
    id,
    get file() {
      return join(projectDir(env, cwd), `${id}.jsonl`);
    },
    run,
    async resume(prompt, args = []) {
      const before = model.requests.length;
      const done = await run(prompt, ['--resume', id, ...args]);
      return { run: done, request: model.requests.slice(before).findLast(({ side }) => !side) };
    },
  };
}

/** The position of a transcript, its chain, and whether all of it would reach the model. Null: there is no such file. */
export async function transcriptState(file: string) {
  const { present, position, chain } = await new TranscriptReader(transcriptAt(file)).skip();
  return present ? { position, chain, whole: isWhole(chain) } : null;
}

export { record as turnRecord } from '../../../values/plain.ts';

export function toolPart(id: string, more: Partial<ToolPart> = {}): ToolPart {
  const defaults = {
    name: 'Bash',
    kind: 'execute',
    target: null,
    input: { command: `echo ${id}` },
    output: `out ${id}`,
  };
  return { type: 'tool', id, ...defaults, status: 'completed', ...more };
}

/**
 * Writes the transcript of these turns. `change` may replace entries, also by a text that is written unchanged. Returns the entries before
 * the change.
 */
export async function writeTranscript(
  { id, cwd, file }: ClaudeSetup,
  records: readonly TurnRecord[],
  change: (entries: Entry[]) => (Entry | string)[] = (entries) => entries,
): Promise<Entry[]> {
  const session = { id, cwd, version: '2.1.325', before: Date.now() };
  const entries = [...synthesise(records, session)].map((line) => JSON.parse(line) as Entry);
  const lines = change(structuredClone(entries)).map((one) =>
    typeof one === 'string' ? one : `${JSON.stringify(one)}\n`,
  );
  const { result } = await putTranscript(transcriptAt(file), lines.join(''));
  if (result !== 'written') throw new Error(`the transcript was not written: ${result}`);
  return entries;
}

/** The messages of a request, one line for each text, call and result. The system messages and reminders of Claude are left out. */
export function linesOfRequest(request: ModelRequest | undefined): string[] {
  return (request?.messages ?? []).flatMap(({ role, texts, toolUses, toolResults }) => {
    if (role === 'system') return [];
    return [
      ...toolResults.map(({ id, text, isError }) => `result ${id} ${isError ? 'failed' : 'ok'}: ${text}`),
      ...texts.filter((text) => !text.trimStart().startsWith('<system-reminder>')).map((text) => `${role}: ${text}`),
      ...toolUses.map(({ id, name, input }) => `call ${id} ${name} ${JSON.stringify(input)}`),
    ];
  });
}

/** The same for the entries of a transcript. */
export function linesOfEntries(entries: readonly Entry[]): string[] {
  return entries.flatMap(({ message }) =>
    blocksOf(message).map((block) => {
      if (block.type === 'tool_use') return `call ${block.id} ${block.name} ${JSON.stringify(block.input)}`;
      if (block.type !== 'tool_result') return `${message?.role}: ${block.text}`;
      return `result ${block.tool_use_id} ${block.is_error ? 'failed' : 'ok'}: ${block.content}`;
    }),
  );
}
