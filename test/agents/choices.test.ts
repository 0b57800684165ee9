// Model, mode and config options, per agent, per conversation and per turn, with real agents: what the model is asked with.
import { expect, test } from 'vitest';
import type { Throughline } from '../../src/index.ts';
import { allEvents, until } from '../e2e/support/conversations.ts';
import { type AcpAgentSettings, codexAcp, quickClaudeAcp, whyNotInstalled } from './support/acp-agents.ts';
import { AcpHome } from './support/acp-home.ts';
import type { AgentHome } from './support/agent-home.ts';
import { findClaude, NOT_INSTALLED } from './support/claude.ts';
import { type ClaudeAdapter, ClaudeHome } from './support/claude-home.ts';

type Raw = Readonly<Record<string, unknown>>;

interface Tried {
  readonly why: string | null;
  readonly make: () => Promise<AgentHome>;
  /** Three models: what a caller names, and what the model is asked as. */
  readonly agent: string;
  readonly usual: string;
  readonly other: readonly [chosen: string, asked: string];
  readonly third: readonly [chosen: string, asked: string];
  /** A mode in which it changes nothing, a config option for its effort, and what the model is asked with. */
  readonly also: {
    readonly choice: { readonly mode: string; readonly config: Readonly<Record<string, string>> };
    readonly seen: (raw: Raw) => { readonly effort: unknown; readonly changesNothing: boolean };
  };
  readonly refused: { readonly choice: object; readonly message: RegExp };
}

const NO_CLAUDE = findClaude() === null ? NOT_INSTALLED : null;
const acp = (make: (model: never, root: string) => AcpAgentSettings) => () => AcpHome.make({ agent: make as never });

const CLAUDE: Tried['also'] = {
  choice: { mode: 'plan', config: { effort: 'low' } },
  seen: ({ output_config, messages }) => ({
    effort: (output_config as { effort?: string } | undefined)?.effort,
    changesNothing: JSON.stringify((messages as unknown[]).at(-1)).includes('Plan mode is active.'),
  }),
};

function claude(adapter: ClaudeAdapter, refused: Tried['refused']): Tried {
  return {
    why: NO_CLAUDE,
    make: () => ClaudeHome.make(adapter),
    agent: 'claude',
    usual: 'claude-opus-5-5',
    other: ['claude-opus-4-6', 'claude-opus-4-6'],
    third: ['claude-sonnet-4-5', 'claude-sonnet-4-5'],
    also: CLAUDE,
    refused,
  };
}

const AGENTS: Record<string, Tried> = {
  'claude-sdk': claude('claude-sdk', {
    choice: { mode: 'nope' },
    message: /^claude: Claude has no mode "nope"; it has: default, acceptEdits, plan/,
  }),
  'claude-cli': claude('claude-cli', {
    choice: { config: { speed: 'x' } },
    message: /^claude: Claude has no config option "speed"; .*: effort\.$/,
  }),
  'claude-agent-acp': {
    why: whyNotInstalled('@agentclientprotocol/claude-agent-acp'),
    make: acp(quickClaudeAcp),
    agent: 'agent',
    usual: 'claude-opus-5-5',
    other: ['sonnet', 'claude-sonnet'],
    third: ['fable', 'claude-fable'],
    also: CLAUDE,
    refused: { choice: { model: 'nope' }, message: /^agent: this agent has no model "nope"; it has: default, opus, / },
  },
  'codex-acp': {
    why: whyNotInstalled('@agentclientprotocol/codex-acp'),
    // Codex cannot be set back to a model of its config file that it does not list.
    make: acp((model, root) => codexAcp(model, root, {}, 'gpt-5.5')),
    agent: 'agent',
    usual: 'gpt-5.5',
    other: ['gpt-5.6-sol', 'gpt-5.6-sol'],
    third: ['gpt-5.6-luna', 'gpt-5.6-luna'],
    also: {
      choice: { mode: 'read-only', config: { reasoning_effort: 'low' } },
      seen: ({ reasoning, input }) => ({
        effort: (reasoning as { effort?: string } | undefined)?.effort,
        changesNothing:
          JSON.stringify(input).lastIndexOf('`read-only`') > JSON.stringify(input).lastIndexOf('`danger-'),
      }),
    },
    refused: { choice: { mode: 'nope' }, message: /^agent: this agent has no mode "nope"; it has: read-only, / },
  },
};

test.concurrent.for(Object.keys(AGENTS))(
  '%s: a turn borrows a model, a conversation keeps one, and a restore has it again',
  async (name, context) => {
    const { why, make, agent, usual, other, third, also, refused } = AGENTS[name] as Tried;
    if (why !== null) context.skip(why);
    await using home = await make();
    const asked = () => home.model.lastRequest()?.model ?? '';
    const ask = async (tl: Throughline, prompt: string, options: object = {}) => {
      const { turn } = await tl.conversation('chat').ask(prompt, options);
      return { asked: asked(), turn };
    };

    const one = await home.open();
    expect((await ask(one, 'The first.')).asked).toContain(usual);
    // What there is to choose is known with the first turn, before anybody has changed it.
    const updates = (await allEvents(one.engine, 'chat')).flatMap((event) =>
      event.kind === 'turn.update' ? [JSON.stringify(event.payload.update)] : [],
    );
    const announced = (kind: string) => updates.findLast((update) => update.includes(`"${kind}"`)) ?? '';
    for (const [option] of Object.entries(also.choice.config)) {
      expect(announced('config_option_update')).toContain(`"id":"${option}"`);
    }
    expect(announced('config_option_update')).toContain('"id":"model"');
    expect(updates.join()).toMatch(new RegExp(`"(?:id|value)":"${also.choice.mode}"`));
    const borrowed = await ask(one, 'The second.', { model: other[0] });
    expect(borrowed.asked).toContain(other[1]);
    expect(borrowed.turn.options).toMatchObject({ model: other[0] });
    expect((await ask(one, 'The third.')).asked, 'given back').toContain(usual);

    // The same for a mode and a config option.
    const seen = () => also.seen(home.model.lastRequest()?.raw ?? {});
    const before = seen();
    await ask(one, 'Only look.', also.choice);
    expect([before.changesNothing, seen()]).toEqual([false, { effort: 'low', changesNothing: true }]);
    await ask(one, 'As before.');
    expect(seen(), 'given back').toEqual(before);

    // What the agent does not have fails the turn, and nothing is sent.
    const requests = home.model.requests.length;
    await expect(one.conversation('chat').ask('Never sent.', refused.choice)).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringMatching(refused.message),
    });
    expect(home.model.requests.length).toBe(requests);

    // A conversation's choice, also after a restart; a turn's own beats it.
    const kept = one.conversation('chat', { model: third[0] });
    expect((await kept.ask('The fourth.')).turn.options.kept).toEqual({ model: third[0] });
    expect(asked()).toContain(third[1]);
    expect((await kept.get()).choices).toEqual({ agent, model: third[0] });
    await one.close();
    const two = await home.open();
    expect((await ask(two, 'The fifth.')).asked, 'kept through a restore').toContain(third[1]);
    expect((await ask(two, 'The sixth.', { model: other[0] })).asked).toContain(other[1]);
    expect((await ask(two, 'The seventh.')).asked).toContain(third[1]);
    await two.conversation('chat', { model: null }).ensure();
    expect((await ask(two, 'The eighth.')).asked, 'no longer kept').toContain(usual);
    await two.close();

    // A process that dies with a borrowed model leaves nothing of it behind.
    const host = await home.host();
    await host.engine.submit('chat', 'model: stream 1000 50ms', { model: other[0] });
    await until('the model is asked', () => asked().includes(other[1]));
    await host.kill();
    expect(asked()).toContain(other[1]);
    const three = await home.open();
    const { turns } = await three.conversation('chat').show();
    expect(turns.at(-1)).toMatchObject({ state: 'interrupted', options: { model: other[0] } });
    expect((await ask(three, 'The last.')).asked, 'given back after a kill').toContain(usual);
    const { turn } = await three.engine.retry(turns.at(-1)?.id ?? '');
    expect(turn.options, 'a retry has the choices of its turn').toMatchObject({ model: other[0] });
    await three.engine.cancel(turn.id);
  },
);
