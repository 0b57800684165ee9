import type { AgentTraits } from '../../core/traits.ts';
import type { AgentInfo } from '../../ports/engine.ts';
import { type Output, type Piece, styled } from './output.ts';
import { oneLine } from './terminal-text.ts';

/** An agent for people: which version, what it can do, where it was found, and whether somebody is logged in. */
export function showAgent(
  { name, adapter, isDefault, where, traits, problem, login }: AgentInfo,
  output: Output,
): void {
  const state = traits === null ? styled('red', oneLine(problem ?? 'not available')) : traitsLine(traits);
  output.line(styled('bold', oneLine(name)), ` (${adapter}${isDefault ? ', default' : ''}): `, state);
  if (traits !== null && problem !== null) output.line('  ', styled('red', oneLine(problem)));
  if (where !== null) output.line('  ', styled('dim', oneLine(where)));
  if (login !== null) output.line('  ', loginLine(login));
}

function traitsLine(traits: AgentTraits): string {
  const can = (['resume', 'load', 'list', 'rehydrate', 'noTools', 'position'] as const).filter(
    (trait) => traits[trait],
  );
  return `version ${oneLine(traits.version)}, ids ${traits.id}, window ${traits.window} tokens; ${can.join(', ') || 'nothing more'}`;
}

function loginLine({ loggedIn, hint }: NonNullable<AgentInfo['login']>): Piece {
  const why = hint === null ? '' : `: ${oneLine(hint)}`;
  if (loggedIn === null) return styled('dim', `login not known${why}`);
  return loggedIn ? styled('dim', 'logged in') : styled('red', `not logged in${why}`);
}
