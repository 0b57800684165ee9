import { clsx } from 'clsx';
import { ExternalLink, ImageIcon } from 'lucide-react';
import type { Token, Tokens } from 'marked';
import { memo, type ReactNode, useRef } from 'react';
import { type Block, isShown, type Lexed, lex, NOTHING_LEXED, safeHref } from './blocks.ts';
import { CodeBlock } from './code-block.tsx';
import { GrowingText } from './growing-text.tsx';

/** Markdown as elements, never as HTML, so that no script in it can run. `isOpen`: it is still being written. */
export function Markdown({ text, isOpen = false }: { text: string; isOpen?: boolean }) {
  const lexed = useRef<Lexed>(NOTHING_LEXED);
  // Kept between renders, so that finished blocks are not lexed again. It depends only on the text.
  lexed.current = lex(lexed.current, text, isOpen);
  const { blocks } = lexed.current;
  return (
    <div className="prose">
      {blocks.map(({ key, token }, index) => (
        <BlockView key={key} token={token} isOpen={isOpen && index === blocks.length - 1} />
      ))}
    </div>
  );
}

const BlockView = memo(function BlockView({ token, isOpen }: { token: Block['token']; isOpen: boolean }) {
  return block(token as Tokens.Generic, isOpen);
});

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
      return <blockquote>{blocksOf(token.tokens)}</blockquote>;
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
  const items = list.items.map((item, index) => (
    <li key={String(index)} className={clsx(item.task && 'list-none')}>
      {item.task && (
        <input type="checkbox" checked={item.checked === true} disabled aria-label={item.checked ? 'Done' : 'Open'} />
      )}
      {item.tokens
        .filter(({ type }) => type !== 'space' && type !== 'checkbox')
        .map((token, at) =>
          token.type === 'text' ? (
            <span key={String(at)}>{inline((token as Tokens.Text).tokens ?? [token])}</span>
          ) : (
            <BlockView key={String(at)} token={token} isOpen={false} />
          ),
        )}
    </li>
  ));
  // The direction of the text decides on which side the marks are.
  if (!list.ordered) return <ul dir="auto">{items}</ul>;
  return (
    <ol dir="auto" start={list.start === '' ? 1 : list.start}>
      {items}
    </ol>
  );
}

function Table({ table }: { table: Tokens.Table }) {
  const align = (index: number) => ({ textAlign: table.align[index] ?? undefined }) as const;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll a wide table
    <section className="overflow-x-auto" tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>
            {table.header.map((cell, index) => (
              <th key={String(index)} style={align(index)}>
                {inline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, at) => (
            <tr key={String(at)}>
              {row.map((cell, index) => (
                <td key={String(index)} style={align(index)}>
                  {inline(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
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
      return <Anchor href={token.href}>{inline(token.tokens)}</Anchor>;
    // Never an `img`: loading it would tell another server, and its address could leak what was said.
    case 'image':
      return (
        <Anchor href={token.href}>
          <ImageIcon size={14} className="mr-1 inline align-[-2px]" aria-label="Image" />
          {token.text || token.href}
        </Anchor>
      );
    case 'text':
    case 'escape':
      return token.tokens ? inline(token.tokens) : <GrowingText text={token.text} />;
    default:
      return token.raw;
  }
}

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
