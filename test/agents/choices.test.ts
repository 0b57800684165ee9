// Model, mode and config options of a turn or of a conversation, with real agents: what the requests to the model contain.
import { expect, test } from 'vitest';
import type { Throughline } from '../../src/index.ts';
import { allEvents, until } from '../e2e/support/conversations.ts';
import { type AcpAgentSettings, codexAcp, quickClaudeAcp, whyNotInstalled } from './support/acp-agents.ts';
import { AcpHome } from './support/acp-home.ts';
import type { AgentHome } from './support/agent-home.ts';
import { findClaude, NOT_INSTALLED } from './support/claude.ts';
import { type ClaudeAdapter, ClaudeHome } from './support/claude-home.ts';

type Raw = Readonly<Record<string, unknown>>;

interface AgentToTest {
  /** The reason to skip the test; null: it can run here. */
  readonly why: string | null;
  readonly makeHome: () => Promise<AgentHome>;
  readonly agent: string;
  /** The model without any choice, as it is in a request. */
  readonly defaultModel: string;
  /** Two other models: the name that a caller uses, and the name in a request. */
  readonly second: readonly [chosen: string, requested: string];
  readonly third: readonly [chosen: string, requested: string];
  /** A read-only mode and a config option for the effort, and how to find both in a request. */
  readonly modeAndConfig: {
    readonly choice: { readonly mode: string; readonly config: Readonly<Record<string, string>> };
    readonly inRequest: (raw: Raw) => { readonly effort: unknown; readonly isReadOnly: boolean };
  };
  /** A choice that the agent does not have, and the message. */
  readonly refused: { readonly choice: object; readonly message: RegExp };
}

const NO_CLAUDE = findClaude() === null ? NOT_INSTALLED : null;
const acpHome = (settings: (model: never, root: string) => AcpAgentSettings) => () =>
  AcpHome.make({ agent: settings as never });

const CLAUDE_CHOICES: AgentToTest['modeAndConfig'] = {
  choice: { mode: 'plan', config: { effort: 'low' } },
  inRequest: ({ output_config, messages }) => ({
    effort: (output_config as { effort?: string } | undefined)?.effort,
    isReadOnly: JSON.stringify((messages as unknown[]).at(-1)).includes('Plan mode is active.'),
  }),
};

function claude(adapter: ClaudeAdapter, refused: AgentToTest['refused']): AgentToTest {
  return {
    why: NO_CLAUDE,
    makeHome: () => ClaudeHome.make(adapter),
    agent: 'claude',
    defaultModel: 'claude-opus-5-5',
    second: ['claude-opus-4-6', 'claude-opus-4-6'],
    third: ['claude-sonnet-4-5', 'claude-sonnet-4-5'],
    modeAndConfig: CLAUDE_CHOICES,
    refused,
  };
}

const AGENTS: Record<string, AgentToTest> = {
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
    makeHome: acpHome(quickClaudeAcp),
    agent: 'agent',
    defaultModel: 'claude-opus-5-5',
    second: ['sonnet', 'claude-sonnet'],
    third: ['fable', 'claude-fable'],
    modeAndConfig: CLAUDE_CHOICES,
    refused: { choice: { model: 'nope' }, message: /^agent: this agent has no model "nope"; it has: default, opus, / },
  },
  'codex-acp': {
    why: whyNotInstalled('@agentclientprotocol/codex-acp'),
    // Codex cannot return to the model of its config file if it does not list that model.
    makeHome: acpHome((model, root) => codexAcp(model, root, {}, 'gpt-5.5')),
    agent: 'agent',
    defaultModel: 'gpt-5.5',
    second: ['gpt-5.6-sol', 'gpt-5.6-sol'],
    third: ['gpt-5.6-luna', 'gpt-5.6-luna'],
    modeAndConfig: {
      choice: { mode: 'read-only', config: { reasoning_effort: 'low' } },
      inRequest: ({ reasoning, input }) => ({
        effort: (reasoning as { effort?: string } | undefined)?.effort,
        isReadOnly: JSON.stringify(input).lastIndexOf('`read-only`') > JSON.stringify(input).lastIndexOf('`danger-'),
      }),
    },
    refused: { choice: { mode: 'nope' }, message: /^agent: this agent has no mode "nope"; it has: read-only, / },
  },
};

test.concurrent.for(Object.keys(AGENTS))(
  '%s: the model of a turn applies to that turn, and the model of a conversation also after a restart',
  async (name, context) => {
    const { why, makeHome, agent, defaultModel, second, third, modeAndConfig, refused } = AGENTS[name] as AgentToTest;
    if (why !== null) context.skip(why);
    await using home = await makeHome();
    const requestedModel = () => home.model.lastRequest()?.model ?? '';
    const ask = async (tl: Throughline, prompt: string, options: object = {}) => {
      const { turn } = await tl.conversation('chat').ask(prompt, options);
      return { model: requestedModel(), turn };
    };

    const firstProcess = await home.open();
    expect((await ask(firstProcess, 'The first.')).model).toContain(defaultModel);
    // The first turn already reports the possible choices.
    const updates = (await allEvents(firstProcess.engine, 'chat')).flatMap((event) =>
      event.kind === 'turn.update' ? [JSON.stringify(event.payload.update)] : [],
    );
    const announced = (kind: string) => updates.findLast((update) => update.includes(`"${kind}"`)) ?? '';
    for (const option of Object.keys(modeAndConfig.choice.config)) {
      expect(announced('config_option_update')).toContain(`"id":"${option}"`);
    }
    expect(announced('config_option_update')).toContain('"id":"model"');
    expect(updates.join()).toMatch(new RegExp(`"(?:id|value)":"${modeAndConfig.choice.mode}"`));
    const chosen = await ask(firstProcess, 'The second.', { model: second[0] });
    expect(chosen.model).toContain(second[1]);
    expect(chosen.turn.options).toMatchObject({ model: second[0] });
    expect((await ask(firstProcess, 'The third.')).model, 'the default again').toContain(defaultModel);

    // The same for a mode and a config option.
    const inLastRequest = () => modeAndConfig.inRequest(home.model.lastRequest()?.raw ?? {});
    const before = inLastRequest();
    await ask(firstProcess, 'Only look.', modeAndConfig.choice);
    expect([before.isReadOnly, inLastRequest()]).toEqual([false, { effort: 'low', isReadOnly: true }]);
    await ask(firstProcess, 'As before.');
    expect(inLastRequest(), 'as before that turn').toEqual(before);

    // A choice that the agent does not have fails the turn, and nothing is sent.
    const requests = home.model.requests.length;
    await expect(firstProcess.conversation('chat').ask('Never sent.', refused.choice)).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringMatching(refused.message),
    });
    expect(home.model.requests.length).toBe(requests);

    // The choice of a conversation is valid also after a restart. The choice of a turn takes precedence.
    const withModel = firstProcess.conversation('chat', { model: third[0] });
    expect((await withModel.ask('The fourth.')).turn.options.kept).toEqual({ model: third[0] });
    expect(requestedModel()).toContain(third[1]);
    expect((await withModel.get()).choices).toEqual({ agent, model: third[0] });
    await firstProcess.close();
    const secondProcess = await home.open();
    expect((await ask(secondProcess, 'The fifth.')).model, 'the model of the conversation after a restart').toContain(
      third[1],
    );
    expect((await ask(secondProcess, 'The sixth.', { model: second[0] })).model).toContain(second[1]);
    expect((await ask(secondProcess, 'The seventh.')).model).toContain(third[1]);
    await secondProcess.conversation('chat', { model: null }).ensure();
    expect((await ask(secondProcess, 'The eighth.')).model, 'the default after the choice is removed').toContain(
      defaultModel,
    );
    await secondProcess.close();

    // The model of a turn does not stay set when the process is killed during that turn.
    const host = await home.host();
    await host.engine.submit('chat', 'model: stream 1000 50ms', { model: second[0] });
    await until('the request is sent', () => requestedModel().includes(second[1]));
    await host.kill();
    expect(requestedModel()).toContain(second[1]);
    const thirdProcess = await home.open();
    const { turns } = await thirdProcess.conversation('chat').show();
    expect(turns.at(-1)).toMatchObject({ state: 'interrupted', options: { model: second[0] } });
    expect((await ask(thirdProcess, 'The last.')).model, 'the default after a kill').toContain(defaultModel);
    const { turn } = await thirdProcess.engine.retry(turns.at(-1)?.id ?? '');
    expect(turn.options, 'a retry has the choices of its turn').toMatchObject({ model: second[0] });
    await thirdProcess.engine.cancel(turn.id);
  },
);
