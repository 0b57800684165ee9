import { isObject } from '../../../core/content.ts';
import { Unfit } from '../connection/answers.ts';
import { asObject } from '../connection/capabilities.ts';
import type { NoToolsProfile } from '../known/profiles.ts';
import type { AcpSession } from '../session/session.ts';
import type { Opener } from './open.ts';

/**
 * Sets what the settings say of every session: its model, its config options, its mode. Agents forget some of that when a
 * session is loaded, so it is said again every time. Throws what the agent answers: what a person set is used or refused.
 */
export async function applySettings(
  session: AcpSession,
  response: Readonly<Record<string, unknown>>,
  { model, options }: Pick<Opener, 'model' | 'options'>,
  profile: NoToolsProfile | null,
): Promise<void> {
  const { connection, id: sessionId } = session;
  const config = { ...(model === null ? {} : { [modelOption(response)]: model }), ...options.config };
  for (const [configId, value] of Object.entries(config)) {
    await connection.request('session/set_config_option', { sessionId, configId, value });
  }
  const setMode = (modeId: string) => connection.request('session/set_mode', { sessionId, modeId });
  if (profile?.kind !== 'mode') {
    if (options.mode !== null) await setMode(options.mode);
    return;
  }
  const { currentModeId } = asObject(response.modes);
  const usual = options.mode ?? (typeof currentModeId === 'string' ? currentModeId : null);
  await setMode(profile.mode);
  session.isQuiet({
    mode: profile.mode,
    async leave() {
      if (usual === null) throw new Unfit('the agent did not say which mode it was in');
      await setMode(usual);
    },
    // Servers are named when a session is opened, and one without tools was opened without them.
    hasAll: options.mcpServers.length === 0,
  });
}

function modelOption({ configOptions }: Readonly<Record<string, unknown>>): string {
  const all = Array.isArray(configOptions) ? configOptions.filter(isObject) : [];
  const id = (all.find(({ category }) => category === 'model') ?? all.find((one) => one.id === 'model'))?.id;
  if (typeof id !== 'string') throw new Unfit('this agent does not let its model be chosen; leave "model" out');
  return id;
}
