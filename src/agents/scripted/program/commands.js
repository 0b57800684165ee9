import { appendFileSync, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { randomId } from './memory.js';

/** @import { AgentOutcome } from '../../../ports/agent.ts' */
/** @import { Turn } from './turn.js' */

/** Every command; docs/scripted-agent.md says what each does. */
/** @type {{ [name: string]: (turn: Turn, rest: string, message: string) => Promise<void> | void }} */
export const COMMANDS = {
  tool: (turn, rest) => tool(turn, rest, 0),
  'slow-tool': (turn, rest) => {
    const [, call = rest, ms = '1000'] = /^(.*?)\s+(\d+)$/.exec(rest) ?? [];
    return tool(turn, call, Number(ms));
  },
  ask: (turn, title, message) => ask(turn, title, message, false),
  'ask!': (turn, title, message) => ask(turn, title, message, true),
  say: (turn, text) => turn.say(text),
  think: (turn, text) => turn.update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text } }),
  condense: (turn) => turn.update({ sessionUpdate: 'compaction_update', status: 'completed' }),
  title: (turn, title) => turn.update({ sessionUpdate: 'session_info_update', title }),
  async stream(turn, rest) {
    const [chunks = 10, ms = 10] = rest.split(/\s+/).map(Number);
    for (let n = 1; n <= chunks; n += 1) {
      if (n > 1) await turn.wait(ms);
      turn.chunk(`chunk ${n} `);
    }
  },
  update: (turn, json) => turn.update(JSON.parse(json)),
  retract: (turn) => turn.update({ sessionUpdate: '_throughline/retracted', messageId: null }),
  async await(turn, file) {
    while (!existsSync(resolve(file))) await turn.wait(LOOK_EVERY_MS);
  },
  fail(turn, rest) {
    const [code = 'agent_failed', times] = rest.split(/\s+/).filter(Boolean);
    if (times !== undefined && turn.session.memory.count(`fail ${rest}`) >= Number(times)) return;
    const known = FAILURES.find((name) => name === code) ?? 'agent_failed';
    throw failed(known, `failed as asked: ${code}`, times !== undefined);
  },
  die(turn, rest) {
    if (rest === 'after-tool') turn.dieInTool = true;
    else process.kill(process.pid, 'SIGKILL');
  },
  exit: (_turn, code) => process.exit(Number(code)),
  garbage(turn) {
    const noise = [
      'Warning: this is no JSON',
      '{"type":"update"',
      '42',
      'null',
      '[]',
      '{}',
      '{"type":"unheard-of"}',
      '\u0000\u001b[31m',
    ];
    turn.connection.write(1, `${noise.join('\n')}\n`);
    for (let n = 0; n < 12; n += 1) turn.connection.write(1, 'x'.repeat(2 ** 20));
    turn.connection.write(1, '\n');
  },
  stderr: (turn, text) => turn.connection.write(2, `${text || 'a \u001b[31mloud\u001b[0m complaint\u0007'}\n`),
  hang: (turn) => turn.wait(Number.POSITIVE_INFINITY),
  'hang!': () => new Promise(() => {}),
  usage(turn, rest) {
    const [inputTokens = 0, outputTokens = 0, costMicros] = rest.split(/\s+/).map(Number);
    turn.usage = { inputTokens, outputTokens, ...(costMicros !== undefined && { costMicros }) };
  },
  spent: (turn, rest) => turn.update({ sessionUpdate: '_throughline/spent', inputTokens: Number(rest) }),
};

const LOOK_EVERY_MS = 10;

const FAILURES = /** @type {const} */ ([
  'agent_failed',
  'signed_out',
  'too_long',
  'session_locked',
  'permission_denied',
]);

/**
 * The effect comes right after the announcement, so that it has happened when the process is killed during a slow tool.
 * @param {Turn} turn
 * @param {string} call
 * @param {number} ms
 */
async function tool(turn, call, ms) {
  if (turn.skipTool) {
    turn.skipTool = false;
    return;
  }
  const { name, target } = parsed(call);
  if (turn.session.noTools) return turn.say(`I have no tools here and did not call ${name}.`);
  const toolCallId = randomId();
  turn.update({
    sessionUpdate: 'tool_call',
    ...announcement(name, target, toolCallId),
    status: 'in_progress',
    rawInput: { target },
  });
  const failure = effect(name, target, toolCallId);
  if (turn.dieInTool) process.kill(process.pid, 'SIGKILL');
  try {
    if (ms > 0) await turn.wait(ms);
  } catch (cancelled) {
    turn.update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'failed', rawOutput: 'cancelled' });
    throw cancelled;
  }
  const end = failure === null ? /** @type {const} */ ('completed') : /** @type {const} */ ('failed');
  const rawOutput = failure ?? `appended a line to ${target}`;
  turn.update({ sessionUpdate: 'tool_call_update', toolCallId, status: end, rawOutput });
}

/**
 * @param {string} name
 * @param {string} target
 * @param {string} toolCallId
 */
function effect(name, target, toolCallId) {
  try {
    appendFileSync(resolve(target), `${name} ${toolCallId}\n`);
    return null;
  } catch (error) {
    return String(error);
  }
}

/**
 * @param {Turn} turn
 * @param {string} title
 * @param {string} message
 * @param {boolean} must
 */
async function ask(turn, title, message, must) {
  // The question shows the tool that waits for it: the first one after this line.
  const [, call] = /^\/(?:slow-)?tool\s+(.*)$/m.exec(message.slice(message.indexOf(title))) ?? [];
  const { name, target } = parsed(call ?? title);
  if (await turn.ask(title, announcement(name, target, randomId()))) return;
  if (must) throw failed('permission_denied', `denied: ${title}`, false);
  turn.skipTool = call !== undefined;
  await turn.say(`Permission denied: ${title}.`);
}

/**
 * @param {string} name
 * @param {string} target
 * @param {string} toolCallId
 */
function announcement(name, target, toolCallId) {
  return { toolCallId, title: name, kind: 'edit', locations: [{ path: target }] };
}

/** @param {string} call */
function parsed(call) {
  const [name = 'tool', ...target] = call.split(/\s+/);
  return { name, target: target.join(' ') || `${name}.log` };
}

/** Thrown to end the running turn with this outcome. */
export class Ending extends Error {
  /** @param {AgentOutcome} outcome */
  constructor(outcome) {
    super(outcome.kind);
    this.outcome = outcome;
  }
}

/**
 * @param {Extract<AgentOutcome, { kind: 'failed' }>['code']} code
 * @param {string} message
 * @param {boolean} again
 */
export function failed(code, message, again) {
  return new Ending({ kind: 'failed', code, message, again });
}
