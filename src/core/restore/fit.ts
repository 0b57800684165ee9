import { type ContentBlock, type ImageBlock, isObject, promptText } from '../turn/content.ts';
import { indentOfRest, quoted, quotedBytes, restOfLine } from '../turn/quoted.ts';
import { DIFF_BEGINS, type RecordPart, replyText, type ToolPart, type TurnRecord } from '../turn/record.ts';
import { byteLength, isShortened, leftOutMark, SHORTEST, shorten } from '../turn/shorten.ts';
import { addLeftOut, type LeftOut, NOTHING_OMITTED, type Omissions } from './receipt.ts';
import type { RestoreSettings } from './restore-settings.ts';
import type { AgentTraits } from './traits.ts';
import { FRAME_BYTES, inputText, renderTurn, toolHeading } from './transcript.ts';

/*
 * Fits the history into a budget, newest turn first:
 *
 *   words    what was said, and a line for each tool. Whole turns, as many as fit; the oldest are dropped.
 *            A turn that is too large for that is shortened, so that the others still fit.
 *   details  the inputs and outputs of tools, and images. They get the room that the words leave, at least a quarter of the budget
 *            if they need it. What does not fit is cut or left out.
 *
 * What was shortened or left out is counted. The result is records with marks in these places, whichever way they are told.
 */

/** An estimate, and called one wherever it is shown: about three bytes a token. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_A_TOKEN);
}

const BYTES_A_TOKEN = 3;

/** How much history a restore may deliver. */
export interface HistoryBudget {
  readonly tokens: number;
  readonly turns: number;
}

/** `shrink` halves it for every time that the agent refused the block as too long. */
export function budgetFor(restore: RestoreSettings, traits: AgentTraits, shrink = 0): HistoryBudget {
  const tokens = restore.budgetTokens ?? Math.floor(traits.window / 2);
  return { tokens: Math.floor(tokens / 2 ** shrink), turns: restore.lastTurns ?? Number.POSITIVE_INFINITY };
}

export interface FittedHistory {
  /** Oldest first. Their prompts have only texts, and the images that fit. */
  readonly records: readonly TurnRecord[];
  readonly omitted: Omissions;
  readonly images: number;
}

/** A turn that is larger than this part of the budget, or than the whole of a small one, is shortened if it does not fit. */
const LARGE = 4;
/** The least room for which a turn is shortened. With less, it is dropped. */
const SHORTEST_TURN = 400;
/** The part of the budget that is kept for details, if there are any. */
const DETAILS = 4;
/** The least room for which a detail is cut. With less, it is left out. */
const SHORTEST_DETAIL = 400;
/** If not all details fit, each gets at most this part of their room, or an equal part if there are fewer. */
const MOST_OF_DETAILS = 8;

/** What an image costs in tokens. Models count its size in pixels, not its bytes; this is a large one. */
export const IMAGE_TOKENS = 1_600;
/** What a request to a model may have; a larger one is refused as a whole. */
const MOST_IMAGES = 20;
const MOST_IMAGE_LENGTH = 5_000_000;
const MOST_LENGTH_OF_IMAGES = 16_000_000;
const IMAGE_TYPES = /^image\/(?:png|jpeg|gif|webp)$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Gathers turns, newest first, until the budget is reached. */
export class HistoryFitter {
  readonly #budget: HistoryBudget;
  readonly #bytes: number;
  /** How many turns there are to offer: shortened turns share the room with those that are still to come. */
  readonly #expected: number;
  readonly #takesImages: boolean;
  readonly #taken: Taken[] = [];
  #used = 0;
  #details = 0;
  #full = false;

  constructor(budget: HistoryBudget, expected: number, takesImages: boolean) {
    this.#budget = budget;
    this.#bytes = budget.tokens * BYTES_A_TOKEN - FRAME_BYTES;
    this.#expected = Math.min(expected, budget.turns);
    this.#takesImages = takesImages;
  }

  /** Whether the turn was taken, whole or shortened. After the first that is not, none is: a history has no holes. */
  offer(record: TurnRecord): boolean {
    const taken = this.#full || this.#taken.length >= this.#budget.turns ? null : this.#take(record);
    if (taken === null) this.#full = true;
    else this.#taken.push(taken);
    return taken !== null;
  }

  get full(): boolean {
    return this.#full;
  }

  fitted(): FittedHistory {
    const count = this.#taken.reduce((sum, { whole }) => sum + detailedTools(whole), 0);
    const left = this.#bytes - this.#used;
    // Either all of them fit, or they share the room.
    const most = this.#details <= left ? left : left / Math.min(MOST_OF_DETAILS, Math.max(1, count));
    const details = new DetailsRoom(left, Math.max(SHORTEST_DETAIL, Math.floor(most)), this.#takesImages);
    const records = this.#taken.map(({ whole }) => details.addTo(whole));
    const shortened = this.#taken.filter((taken) => taken.shortened).length;
    const leftOut = this.#taken.reduce((sum, { lost }) => addLeftOut(sum, lost), details.leftOut);
    return { records: records.reverse(), omitted: { shortened, leftOut }, images: details.images };
  }

  #take(record: TurnRecord): Taken | null {
    const all = withTextOnly(record);
    const short = cutIfRefused(all);
    const details = this.#details + detailsBytes(short, this.#takesImages);
    const room = this.#bytes - this.#used - Math.min(details, this.#bytes / DETAILS);
    const bytes = bytesOf(withoutDetails(short));
    const whole = bytes <= room ? short : this.#shortened(short, bytes, room);
    if (whole === null) return null;
    this.#used += whole === short ? bytes : bytesOf(withoutDetails(whole));
    this.#details = details;
    return { whole, shortened: whole !== all, lost: lostBetween(record, whole) };
  }

  /** Null: the turn is dropped. */
  #shortened(record: TurnRecord, bytes: number, room: number): TurnRecord | null {
    const large = bytes > this.#bytes / LARGE;
    if (!large && this.#taken.length > 0) return null;
    const part = large ? room / Math.min(LARGE, Math.max(1, this.#expected - this.#taken.length)) : room;
    const share = Math.max(part, Math.min(room, 2 * SHORTEST_TURN));
    return share < SHORTEST_TURN ? null : shortenTurn(record, share);
  }
}

/** A turn that was taken, still with all of its details. */
interface Taken {
  readonly whole: TurnRecord;
  readonly shortened: boolean;
  /** What it lost already. */
  readonly lost: LeftOut;
}

function lostBetween(record: TurnRecord, kept: TurnRecord): LeftOut {
  const images = ({ prompt }: TurnRecord) => prompt.filter(({ type }) => type === 'image').length;
  const files = record.prompt.filter(
    (block) => block.type === 'audio' || (block.type === 'resource' && 'blob' in block.resource),
  );
  const outputs = detailedTools(record) - detailedTools(kept);
  return { outputs, images: images(record) - images(kept), files: files.length };
}

/** How many of its tools have an input or an output to tell, or an output that was not reported. */
function detailedTools({ parts }: TurnRecord): number {
  return parts.filter((part) => isTool(part) && (hasDetails(part) || part.output === null)).length;
}

const isTool = (part: RecordPart): part is ToolPart => part.type === 'tool';

function bytesOf(record: TurnRecord): number {
  return byteLength(renderTurn(record)) + 2;
}

// ── words ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Everything but images as text, which every agent accepts, and without thoughts. An image of a failed turn is only named: it may be
 * why the turn failed, and would fail the next one.
 */
function withTextOnly(record: TurnRecord): TurnRecord {
  const parts = record.parts
    .filter(({ type }) => type !== 'thought')
    .map((part) => (isTool(part) && part.output?.startsWith(DIFF_BEGINS) ? { ...part, input: null } : part));
  const prompt = record.prompt.map((block): ContentBlock => {
    if (block.type === 'image') return record.outcome === 'failed' ? imageName(block) : block;
    return block.type === 'text' ? block : { type: 'text', text: asText(block) };
  });
  return { ...record, prompt, parts };
}

/** A file is indented, so that its text does not look like the words of the person. */
function asText(block: Exclude<ContentBlock, ImageBlock>): string {
  if (block.type !== 'resource' || !('text' in block.resource)) return restOfLine(promptText([block]));
  return `${restOfLine(`[file ${block.resource.uri}]`)}\n${quoted(block.resource.text)}`;
}

const LONGEST_REFUSED = 1_000;

/** A prompt that was refused as too long would be refused again, so only a part of it is told. */
function cutIfRefused(record: TurnRecord): TurnRecord {
  if (record.failure?.code !== 'too_long') return record;
  const text = promptText(record.prompt);
  const short = shorten(text, LONGEST_REFUSED, indentOfRest);
  return short === text ? record : { ...record, prompt: [{ type: 'text', text: short }] };
}

/** The words of a turn. The same blocks and parts in the same order, so that details can take their places. */
function withoutDetails(record: TurnRecord): TurnRecord {
  const prompt = record.prompt.map((block) => (block.type === 'image' ? imageName(block) : block));
  const parts = record.parts.map((part) => (isTool(part) ? { ...part, ...noDetails(part) } : part));
  return { ...record, prompt, parts };
}

function imageName({ mimeType }: ImageBlock): ContentBlock {
  return { type: 'text', text: restOfLine(`[image ${mimeType}, left out]`) };
}

function noDetails({ output }: ToolPart): Pick<ToolPart, 'input' | 'output'> {
  return { input: null, output: hasWords(output) ? leftOutMark(output.length) : output };
}

function hasWords(output: string | null): output is string {
  return output !== null && output.trim() !== '';
}

function hasDetails(tool: ToolPart): boolean {
  return hasWords(tool.output) || inputText(tool) !== '';
}

/** The beginning and the end of the prompt, of the answer, and of the tools; null: there is no room even for that. */
function shortenTurn(record: TurnRecord, room: number): TurnRecord | null {
  const images = record.prompt.filter((block) => block.type === 'image').slice(-MOST_IMAGES);
  const prompt = promptText(record.prompt.filter(({ type }) => type !== 'image'));
  const reply = replyText(record.parts);
  const tools = firstAndLast(record.parts.filter(isTool), room / 4);
  const only = (said: string, answered: string): TurnRecord => {
    const answer: RecordPart[] = answered === '' ? [] : [{ type: 'text', text: answered }];
    return { ...record, prompt: [{ type: 'text', text: said }, ...images], parts: [...tools, ...answer] };
  };
  const left = Math.floor(room) - bytesOf(withoutDetails(only('', reply === '' ? '' : '.')));
  if (left < 2 * SHORTEST) return null;
  const half = Math.floor(left / 2);
  const [promptBytes, replyBytes] = [quotedBytes(prompt), quotedBytes(reply)];
  const forPrompt = replyBytes <= half ? left - replyBytes : Math.min(promptBytes, half);
  const said = shortenQuoted(prompt, forPrompt, quotedBytes, indentOfRest);
  return only(said, shortenQuoted(reply, left - Math.min(promptBytes, forPrompt)));
}

/** The same as `shorten`, for a text that is indented where it is told. */
function shortenQuoted(text: string, bytes: number, told = quotedBytes, lead?: typeof indentOfRest): string {
  for (let room = bytes; ; ) {
    const short = shorten(text, room, lead);
    const over = told(short) - bytes;
    if (over <= 0 || room < 0) return short;
    room -= over;
  }
}

/** As many of the first and the last tools as have room. */
function firstAndLast(tools: readonly ToolPart[], room: number): ToolPart[] {
  const kept: ToolPart[] = [];
  let left = room;
  for (let i = 0; i < tools.length; i += 1) {
    // The last, the first, the last but one, the second, …
    const at = i % 2 === 0 ? tools.length - 1 - i / 2 : (i - 1) / 2;
    const tool = tools[at] as ToolPart;
    left -= byteLength(toolHeading(tool)) + LINE_BYTES;
    if (left < 0) break;
    kept.push(tool);
  }
  return tools.filter((tool) => kept.includes(tool));
}

/** About how many bytes the lines of a tool have besides its name, target, input and output. */
const LINE_BYTES = 100;

// ── details ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function detailsBytes({ prompt, parts }: TurnRecord, takesImages: boolean): number {
  const images = takesImages ? prompt.filter(isShowable).length : 0;
  return parts.filter(isTool).reduce((sum, tool) => sum + toolBytes(tool), images * IMAGE_TOKENS * BYTES_A_TOKEN);
}

/** The bytes of its input and its output, with the lines that name them. */
function toolBytes(tool: ToolPart): number {
  return hasDetails(tool) ? quotedBytes(inputText(tool)) + quotedBytes(tool.output ?? '') + 2 * LINE_BYTES : 0;
}

function isShowable(block: ContentBlock): block is ImageBlock {
  return (
    block.type === 'image' &&
    IMAGE_TYPES.test(block.mimeType) &&
    block.data.length <= MOST_IMAGE_LENGTH &&
    BASE64.test(block.data)
  );
}

/** The room that is left for details. Turns come newest first. */
class DetailsRoom {
  readonly #takesImages: boolean;
  readonly #most: number;
  #room: number;
  #imageLength = 0;
  images = 0;
  leftOut = NOTHING_OMITTED.leftOut;

  /** `most`: the most that one tool gets. */
  constructor(room: number, most: number, takesImages: boolean) {
    this.#room = room;
    this.#most = most;
    this.#takesImages = takesImages;
  }

  /** The turn with as many of its details as have room: the last ones first. */
  addTo(whole: TurnRecord): TurnRecord {
    const prompt = whole.prompt.toReversed().map((block) => {
      return block.type !== 'image' || this.#addImage(block) ? block : imageName(block);
    });
    const parts = whole.parts.toReversed().map((part) => (isTool(part) ? { ...part, ...this.#addTool(part) } : part));
    return { ...whole, prompt: prompt.reverse(), parts: parts.reverse() };
  }

  #addImage(image: ImageBlock): boolean {
    const bytes = IMAGE_TOKENS * BYTES_A_TOKEN;
    const length = this.#imageLength + image.data.length;
    const fits = bytes <= this.#room && this.images < MOST_IMAGES && length <= MOST_LENGTH_OF_IMAGES;
    if (!fits || !this.#takesImages || !isShowable(image)) {
      this.leftOut = { ...this.leftOut, images: this.leftOut.images + 1 };
      return false;
    }
    this.#room -= bytes;
    this.#imageLength = length;
    this.images += 1;
    return true;
  }

  #addTool(tool: ToolPart): Pick<ToolPart, 'input' | 'output'> {
    const bytes = toolBytes(tool);
    const room = Math.min(this.#room, this.#most);
    // A record keeps only a part of a long output, what came before the end of one that was cut off, and nothing of one that the agent
    // did not report.
    const isPart = tool.output === null || tool.status === 'unknown' || isShortened(tool.output);
    const incomplete = bytes > room || isPart;
    if (incomplete) this.leftOut = { ...this.leftOut, outputs: this.leftOut.outputs + 1 };
    if (!hasDetails(tool)) return noDetails(tool);
    if (bytes <= room) {
      this.#room -= bytes;
      return tool;
    }
    if (room < SHORTEST_DETAIL) return noDetails(tool);
    const cut = cutDetails(tool, room - 2 * LINE_BYTES);
    this.#room -= toolBytes({ ...tool, ...cut });
    return cut;
  }
}

/** The output gets more room than the input, whose target is in the heading. */
function cutDetails(tool: ToolPart, room: number): Pick<ToolPart, 'input' | 'output'> {
  const most = Math.max(SHORTEST, Math.ceil((room * 2) / 3));
  const output = tool.output === null ? null : shortenQuoted(tool.output, most);
  const left = room - quotedBytes(output ?? '');
  const input = inputText(tool);
  if (quotedBytes(input) <= left) return { input: tool.input, output };
  return { input: left < SHORTEST ? null : cutInput(tool, input, left), output };
}

/** Cuts the longest text of the input; if that is not enough, the input as a whole. */
function cutInput(tool: ToolPart, text: string, room: number): unknown {
  // A field of several lines is indented once more.
  const told = (value: string) => quotedBytes(quoted(value)) + 1;
  if (isObject(tool.input)) {
    const longest = Object.entries(tool.input)
      .filter((entry): entry is [string, string] => typeof entry[1] === 'string')
      .toSorted(([, a], [, b]) => b.length - a.length)[0];
    if (longest !== undefined) {
      const [name, value] = longest;
      const left = room - quotedBytes(inputText({ ...tool, input: { ...tool.input, [name]: '' } }));
      if (left >= SHORTEST) return { ...tool.input, [name]: shortenQuoted(value, left, told) };
    }
  }
  return { input: shortenQuoted(text, room, told) };
}
