import { warningOf } from '../../../core/input/warning.ts';
import { allowOption, denyOption } from '../../../core/turn/permission.ts';
import { questionText } from '../commands/turns/answers.ts';
import { cells, graphemes, oneLine, stripControls } from '../terminal-text.ts';
import type { Editor } from './input/editor.ts';
import { clipped, type Line, span, wrap } from './text/cells.ts';
import type { Activity, Question } from './transcript.ts';

/** What is drawn below the printed lines: the end of the conversation that may change, a question, the status, the input. */
interface ViewState {
  /** The end of the conversation that may still change. */
  readonly live: readonly Line[];
  readonly activity: Activity | null;
  readonly agent: string | null;
  readonly queued: readonly string[];
  readonly unsent: readonly string[];
  readonly question: Question | null;
  /** How many more questions wait. */
  readonly moreQuestions: number;
  /** The option that Enter chooses; null: none. */
  readonly selected: number | null;
  readonly editor: Editor;
  /** A line below the input; null: none. */
  readonly hint: string | null;
  /** What the engine waits for; null: it does not wait. */
  readonly trouble: string | null;
  readonly now: number;
}

export interface View {
  readonly lines: readonly Line[];
  readonly cursor: { readonly row: number; readonly column: number };
}

/** How many lines of the input are shown at most, around the cursor. */
const MOST_INPUT = 10;
const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

export function view(state: ViewState, columns: number, rows: number): View {
  // The last column stays free: a terminal would break the line after it.
  const width = Math.max(10, columns - 1);
  const input = inputLines(state.editor, width, Math.max(1, Math.min(MOST_INPUT, rows - 3)));
  const hint = state.hint === null ? [] : wrap([span(state.hint, 'dim')], width);
  const above = [...questionLines(state, width), ...statusLines(state, width)];
  const room = Math.max(0, rows - 1 - input.lines.length - hint.length);
  const shownAbove = above.slice(-room);
  const live = state.live.slice(-Math.max(0, room - shownAbove.length - 1));
  const lines = [...live, ...(room > shownAbove.length + live.length ? [[]] : []), ...shownAbove];
  const row = lines.length + input.row;
  return { lines: [...lines, ...input.lines, ...hint], cursor: { row, column: input.column } };
}

function statusLines({ activity, agent, queued, unsent, trouble, question, now }: ViewState, width: number): Line[] {
  const lines: Line[] = [];
  for (const [texts, what] of [[queued, 'queued'] as const, [unsent, 'sending'] as const]) {
    for (const text of texts.slice(0, 3))
      lines.push(clipped([span(`${what}: `, 'dim'), span(firstLine(text), 'dim')], width));
    if (texts.length > 3) lines.push([span(`… and ${texts.length - 3} more ${what}`, 'dim')]);
  }
  if (trouble !== null) lines.push(...wrap([span(`! ${trouble}`, 'yellow')], width));
  if (activity !== null && question === null) {
    const spinner = SPINNER[Math.floor(now / 120) % SPINNER.length] ?? '';
    const took = now - activity.since < 1_000 ? '' : ` · ${Math.floor((now - activity.since) / 1000)} s`;
    const who = agent === null ? '' : `${agent}: `;
    lines.push(clipped([span(`${spinner} `, 'cyan'), span(`${who}${activity.what}${took}`, 'dim')], width));
  }
  return lines;
}

function firstLine(text: string): string {
  const [line = '', ...more] = stripControls(text).trim().split('\n');
  return more.length === 0 ? line : `${line} … (${more.length + 1} lines)`;
}

/** How many lines of a question are shown at most. */
const MOST_QUESTION = 8;

function questionLines({ question, moreQuestions, selected, editor }: ViewState, width: number): Line[] {
  if (question === null) return [];
  const title = wrap([span(questionText(question.title), 'bold')], width, {
    first: [span('? The agent asks: ', 'yellow')],
    rest: [span('  ')],
  });
  const warning = warningOf([question.title]);
  const warned =
    warning === null
      ? []
      : wrap([span(`! ${warning}`, 'yellow')], width, { first: [span('  ')], rest: [span('    ')] });
  const cut = title.length > MOST_QUESTION ? [[span(`  … (${title.length - MOST_QUESTION} more lines)`, 'dim')]] : [];
  const options = question.options.flatMap(({ name }, index): Line => {
    const isChosen = index === selected;
    const label = `${index + 1} ${oneLine(name, 'code')}`;
    // The brackets show the choice of Enter also without colours.
    return [span('  '), isChosen ? span(`[${label}]`, 'inverse') : span(` ${label} `)];
  });
  const more = moreQuestions === 0 ? '' : ` · ${moreQuestions} more after this`;
  const how =
    editor.text === ''
      ? `  a number or ← → chooses, Enter answers${more}`
      : '  empty the input to answer by key, or write /allow or /deny';
  return [
    ...title.slice(0, MOST_QUESTION),
    ...cut,
    ...warned,
    ...wrap(options, width),
    clipped([span(how, 'dim')], width),
  ];
}

/** Enter never allows by itself: first chosen is the option that denies, and if there is none, no option. */
export function firstChoice({ options }: Question): number | null {
  const deny = denyOption(options);
  return deny === null ? null : options.indexOf(deny);
}

export function optionFor(word: 'allow' | 'deny', { options }: Question): string | null {
  return (word === 'allow' ? allowOption(options) : denyOption(options))?.optionId ?? null;
}

interface InputView {
  readonly lines: readonly Line[];
  readonly row: number;
  readonly column: number;
}

const MARK = '› ';

const MARK_CELLS = cells(MARK);

/** The input, cut into rows cell by cell, so that the place of the cursor is exact. */
function inputLines({ text, at }: Editor, width: number, most: number): InputView {
  const rows: string[] = [''];
  let [row, column, used] = [0, MARK_CELLS, MARK_CELLS];
  // The input may be very long: only the lines that can be visible around the cursor are read.
  const from = linesAway(at, most, (place) => (place > 0 ? text.lastIndexOf('\n', place - 1) : -1)) + 1;
  const to = linesAway(at - 1, most, (place) => text.indexOf('\n', place + 1));
  let index = from;
  const here = () => {
    if (index === at) [row, column] = [rows.length - 1, used];
  };
  for (const grapheme of graphemes(text.slice(from, to === -1 ? text.length : to))) {
    const shown = shownAs(grapheme, width - MARK_CELLS);
    const need = grapheme === '\n' ? 0 : cells(shown);
    if (used + need > width) {
      rows.push('');
      used = MARK_CELLS;
    }
    here();
    index += grapheme.length;
    if (grapheme === '\n') {
      rows.push('');
      used = MARK_CELLS;
    } else {
      rows[rows.length - 1] += shown;
      used += need;
    }
  }
  here();
  const first = Math.max(0, Math.min(row - (most >> 1), rows.length - most));
  const lines = rows.slice(first, first + most).map((each, offset): Line => {
    const isFirst = from === 0 && first + offset === 0;
    return [isFirst ? span(MARK, 'cyan', 'bold') : span('  '), span(each)];
  });
  return { lines, row: row - first, column };
}

/** The place after so many steps of `next`; -1: there are fewer lines. */
function linesAway(from: number, count: number, next: (place: number) => number): number {
  let place = from;
  for (let n = 0; n < count; n += 1) {
    place = next(place);
    if (place === -1) return -1;
  }
  return place;
}

/** An invisible character is shown as its number. A tab is one space: it would take more than one cell. */
function shownAs(grapheme: string, room: number): string {
  if (grapheme.length === 1 && grapheme <= '~') return grapheme === '\t' ? ' ' : grapheme;
  const shown = stripControls(grapheme);
  return cells(shown) > room ? '\ufffd' : shown;
}
