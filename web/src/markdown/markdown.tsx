import { clsx } from 'clsx';
import { ExternalLink, ImageIcon } from 'lucide-react';
import type { Token, Tokens } from 'marked';
import { memo, type ReactNode, useRef } from 'react';
import { useRest } from '../timeline/find.ts';
import { MoreButton } from '../ui/more-button.tsx';
import { type Block, isShown, type Lexed, lex, NOTHING_LEXED, safeHref } from './blocks.ts';
import { CodeBlock } from './code-block.tsx';
import { withCharacters } from './entities.ts';
import { GrowingText } from './growing-text.tsx';
import { piecesOf, withShortLines } from './long-text.ts';

/** Markdown as elements, never as HTML, so that no script in it can run. `isOpen`: it is still being written. */
export function Markdown({ text, isOpen = false }: { text: string; isOpen?: boolean }) {
  const [isWhole, showWhole] = useRest(() => text);
  const { text: shown, left } = isWhole ? { text, left: 0 } : withShortLines(text);
  const lexed = useRef<Lexed>(NOTHING_LEXED);
  // Kept between renders, so that finished blocks are not lexed again. It depends only on the text.
  lexed.current = lex(lexed.current, shown, isOpen);
  const { blocks } = lexed.current;
  return (
    <div className="prose">
      {blocks.map(({ key, token }, index) => (
        <BlockView key={key} token={token} isOpen={isOpen && index === blocks.length - 1} />
      ))}
      {left > 0 && <MoreButton onClick={showWhole}>{`${left.toLocaleString('en')} more characters`}</MoreButton>}
    </div>
  );
}

/** A block is lexed again with every word, and so are all items of a list. What was written in the same way is not rendered again. */
const BlockView = memo(
  function BlockView({ token, isOpen }: { token: Block['token']; isOpen: boolean }) {
    return block(token as Tokens.Generic, isOpen);
  },
  (before, now) => before.isOpen === now.isOpen && isSame(before.token, now.token),
);

function isSame(before: Token, now: Token): boolean {
  return before === now || (before.type === now.type && before.raw === now.raw);
}

function block(token: Tokens.Generic, isOpen: boolean): ReactNode {
  switch (token.type) {
    case 'code':
      return <CodeBlock text={token.text} language={token.lang ?? ''} isOpen={isOpen} />;
    case 'heading': {
      const Heading = `h${Math.min(token.depth + 1, 6)}` as 'h2';
      return <Heading>{inline(token.tokens)}</Heading>;
    }
    case 'list':
      return <List list={token as Tokens.List} />;
    case 'table':
      return <Table table={token as Tokens.Table} />;
    case 'blockquote':
      return <blockquote dir="auto">{blocksOf(token.tokens)}</blockquote>;
    case 'hr':
      return <hr />;
    case 'paragraph':
      return <p>{inline(token.tokens)}</p>;
    // HTML is shown as it was written.
    case 'html':
      return <p className="whitespace-pre-wrap">{token.text.trimEnd()}</p>;
    default:
      return token.tokens ? <p>{inline(token.tokens)}</p> : <p>{token.raw}</p>;
  }
}

function blocksOf(tokens: Token[] | undefined): ReactNode {
  return tokens?.filter(isShown).map((token, index) => <BlockView key={String(index)} token={token} isOpen={false} />);
}

function List({ list }: { list: Tokens.List }) {
  const items = list.items.map((item, index) => <Item key={String(index)} item={item} />);
  // The direction of the text decides on which side the marks are.
  if (!list.ordered) return <ul dir="auto">{items}</ul>;
  return (
    <ol dir="auto" start={list.start === '' ? 1 : list.start}>
      {items}
    </ol>
  );
}

const Item = memo(
  function Item({ item }: { item: Tokens.ListItem }) {
    return <li className={clsx(item.task && 'list-none')}>{item.tokens.filter(isShown).map(partOfItem)}</li>;
  },
  (before, now) => isSame(before.item, now.item) && before.item.loose === now.item.loose,
);

/** In a list without empty lines, the text of an item is no paragraph. */
function partOfItem(token: Token, index: number): ReactNode {
  if (token.type === 'checkbox') return <Inline key={String(index)} token={token as Tokens.Generic} />;
  if (token.type !== 'text') return <BlockView key={String(index)} token={token} isOpen={false} />;
  return <span key={String(index)}>{inline((token as Tokens.Text).tokens ?? [token])}</span>;
}

function Table({ table }: { table: Tokens.Table }) {
  const { align } = table;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll a wide table
    <section className="overflow-x-auto" tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>
            {table.header.map((cell, index) => (
              <th key={String(index)} style={aligned(align[index])}>
                {inline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((cells, at) => (
            <Row key={String(at)} cells={cells} align={align} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

type Align = Tokens.Table['align'];

const Row = memo(
  function Row({ cells, align }: { cells: readonly Tokens.TableCell[]; align: Align }) {
    return (
      <tr>
        {cells.map(({ text, tokens }, index) => (
          // A number, a date or a path stays on its line.
          <td
            key={String(index)}
            style={aligned(align[index])}
            className={clsx(!/\s/.test(text) && 'whitespace-nowrap')}
          >
            {inline(tokens)}
          </td>
        ))}
      </tr>
    );
  },
  (before, now) =>
    before.cells.length === now.cells.length &&
    before.cells.every(({ text }, index) => text === now.cells[index]?.text),
);

function aligned(align: Align[number] | undefined) {
  return align ? { textAlign: align } : undefined;
}

function inline(tokens: Token[] | undefined): ReactNode {
  return tokens?.map((token, index) => <Inline key={String(index)} token={token as Tokens.Generic} />);
}

function Inline({ token }: { token: Tokens.Generic }): ReactNode {
  switch (token.type) {
    case 'strong':
      return <strong>{inline(token.tokens)}</strong>;
    case 'em':
      return <em>{inline(token.tokens)}</em>;
    case 'del':
      return <del>{inline(token.tokens)}</del>;
    case 'codespan':
      return <code>{token.text}</code>;
    case 'br':
      return <br />;
    case 'link':
      return <Anchor href={withCharacters(token.href)}>{inline(token.tokens)}</Anchor>;
    // Never an `img`: loading it would tell another server, and its address could leak what was said.
    case 'image':
      return (
        <Anchor href={withCharacters(token.href)}>
          <ImageIcon size={14} className="mr-1 inline align-[-2px]" aria-label="Image" />
          {withCharacters(token.text) || token.href}
        </Anchor>
      );
    case 'checkbox':
      return <input type="checkbox" checked={token.checked} disabled aria-label={token.checked ? 'Done' : 'Open'} />;
    case 'escape':
      return token.text;
    case 'text':
      return token.tokens ? inline(token.tokens) : <Words text={withCharacters(token.text)} />;
    default:
      return token.raw;
  }
}

/** In pieces, so that only the last one of a very long text is laid out again when it grows. */
function Words({ text }: { text: string }) {
  return piecesOf(text, ' ').map((piece, index) => <Piece key={String(index)} text={piece} />);
}

const Piece = memo(function Piece({ text }: { text: string }) {
  return <GrowingText text={text} />;
});

function Anchor({ href, children }: { href: string; children: ReactNode }) {
  const safe = safeHref(href);
  if (safe === null) return <span title={href}>{children}</span>;
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer nofollow">
      {children}
      <ExternalLink size={11} className="ml-0.5 inline align-baseline opacity-60" aria-hidden />
    </a>
  );
}
