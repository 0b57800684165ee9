import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { reportedDiff } from '../../../../src/core/turn/reported-diff.ts';
import { ended, event } from '../../../e2e/support/conversations.ts';
import { type ClaudeAdapter, SharedChat } from '../../support/claude-home.ts';

const tool = (name: string, input: object) => `model: tool ${name} ${JSON.stringify(input)}`;
const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => `line ${from + n}\n`).join('');

export function fileChanges(adapter: ClaudeAdapter): void {
  test('files that Claude writes and edits are asked for as diffs, and recorded with the numbers of their lines', async () => {
    await using chat = await SharedChat.start(adapter);
    const { cwd, tl } = chat;
    const path = join(cwd, 'notes.txt');

    const written = await allowed(chat, tool('Write', { file_path: path, content: numbered(1, 40) }));
    expect(written.asked).toEqual([{ path, oldText: null, newText: numbered(1, 40), lines: null }]);
    expect(written.diffs).toEqual([{ path, oldText: null, newText: numbered(1, 40), lines: [1, 1] }]);

    const edit = { file_path: path, old_string: 'line 30\n', new_string: 'line thirty\nand more\n' };
    const edited = await allowed(chat, tool('Edit', edit));
    expect(edited.asked).toEqual([{ path, oldText: edit.old_string, newText: edit.new_string, lines: null }]);
    const [before, after] = [numbered(27, 29), numbered(31, 33).trimEnd()];
    expect(edited.diffs).toEqual([
      {
        path,
        oldText: `${before}line 30\n${after}`,
        newText: `${before}line thirty\nand more\n${after}`,
        lines: [27, 27],
      },
    ]);
    expect(edited.output).toBe(`[diff ${path}, line 30]\n-line 30\n+line thirty\n+and more`);
    expect(readFileSync(path, 'utf8')).toContain('line thirty\nand more\n');

    const failed = await chat.ask(tool('Edit', { ...edit, old_string: 'not there' }));
    const [record] = await tl.engine.records('chat', { before: 'end', limit: 1 });
    expect(failed.turn.state).toBe('completed');
    expect(record?.parts.find((part) => part.type === 'tool')).not.toHaveProperty('diffs');
  });
}

/** Sends a prompt, and allows the one thing that Claude asks for. */
async function allowed({ conversation, tl }: SharedChat, prompt: string) {
  const { turn } = await conversation.send(prompt).accepted;
  await event(tl.engine, 'chat', 'permission.asked', { turn: turn.id });
  const [permission] = await tl.engine.permissions({ conversation: 'chat', open: true });
  const option = permission?.options.find(({ kind }) => kind === 'allow_once');
  await tl.engine.answer(permission?.id ?? '', option?.optionId ?? '');
  const { n } = await ended(tl.engine, turn);
  const records = await tl.engine.records('chat', { after: n - 1 });
  const part = records[0]?.parts.find(({ type }) => type === 'tool');
  const { diffs, output } = part?.type === 'tool' ? part : {};
  const call = permission?.toolCall as { readonly content?: readonly unknown[] } | undefined;
  return { asked: call?.content?.map(reportedDiff), diffs, output };
}
