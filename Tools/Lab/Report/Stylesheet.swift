extension Markup {
    /// Letters and colours carry the same information, so that either suffices. All pairs of colours have a
    /// contrast of 4.5 to 1 at least. Source: WCAG 2.2, success criterion 1.4.3.
    static let stylesheet: Markup = """

        :root {
          --page: #fff; --ink: #1b1f24; --soft: #59616b; --line: #d5d9df; --sunk: #f4f6f8; --link: #0a56b3;
          --fell: #b3261e; --fell-ink: #fff; --held: #d9f0df; --held-ink: #0a5427;
          --error: #ffe08a; --error-ink: #5c3d00; --none-ink: #646b75;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --page: #14171b; --ink: #e6e9ed; --soft: #a5adb8; --line: #343a42; --sunk: #1c2026;
            --link: #8ab8ff;
            --fell: #c9362c; --fell-ink: #fff; --held: #17392a; --held-ink: #9ce2b5;
            --error: #574400; --error-ink: #ffdf80; --none-ink: #8b939e;
          }
        }
        * { box-sizing: border-box; }
        html { scroll-padding-top: 1rem; }
        body {
          margin: 0 auto; padding: 1.5rem clamp(.75rem, 3vw, 2.5rem) 4rem; max-width: 78rem;
          background: var(--page); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif;
        }
        h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .5rem; }
        h2 { font-size: 1.3rem; margin: 2.5rem 0 .25rem; }
        h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; color: var(--soft); font-weight: 600; }
        p { margin: .25rem 0 .75rem; max-width: 46rem; }
        a { color: var(--link); }
        code, pre, tbody th, .line b, .row > h2 { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
        code { font-size: .9em; }
        footer, .hint, .cut, .sentence { color: var(--soft); }
        footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem; }

        .facts { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1rem 0 1.5rem; }
        .facts div {
          display: flex; flex-direction: column-reverse; padding: .5rem .9rem; border-radius: .4rem;
          background: var(--sunk);
        }
        .facts dt { font-size: .85rem; }
        .facts dd { margin: 0; font-size: 1.4rem; font-weight: 650; line-height: 1.2; }
        .facts .held { background: var(--held); color: var(--held-ink); }
        .facts .fell { background: var(--fell); color: var(--fell-ink); }
        .facts .error { background: var(--error); color: var(--error-ink); }

        .mark {
          display: inline-block; flex: none; width: 1.6em; text-align: center; border-radius: .25rem;
          font-weight: 700;
        }
        .mark.fell, td.fell { background: var(--fell); color: var(--fell-ink); }
        .mark.held, td.held { background: var(--held); color: var(--held-ink); }
        .mark.error, td.error { background: var(--error); color: var(--error-ink); }
        .mark.none, td.none { color: var(--none-ink); }
        .legend li { display: flex; gap: .5rem; align-items: baseline; }
        .legend { list-style: none; margin: 0 0 .5rem; padding: 0; display: grid; gap: .3rem; }
        .wide > summary { cursor: pointer; color: var(--link); margin: .5rem 0; }

        .scroll { overflow: auto; max-height: 92vh; border: 1px solid var(--line); border-radius: .4rem;
        width: fit-content; max-width: 100%; }
        table { border-collapse: separate; border-spacing: 0; font-size: .85rem; }
        thead th {
          position: sticky; top: 0; z-index: 1; background: var(--page); vertical-align: bottom;
          padding: .6rem .2rem;
          border-bottom: 1px solid var(--line); font-weight: 600;
        }
        thead span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap;
        line-height: 1; }
        tbody th {
          position: sticky; left: 0; background: var(--page); text-align: left; font-weight: 400;
          white-space: nowrap; padding: .1rem .6rem;
          border-right: 1px solid var(--line);
        }
        tbody th a { color: inherit; text-decoration: none; }
        tbody th a:hover { text-decoration: underline; }
        thead th:first-child { left: 0; z-index: 2; border-right: 1px solid var(--line); }
        td { padding: 0; border: 1px solid var(--page); border-width: 0 1px 1px 0; }
        td a {
          display: block; min-width: 2.6rem; padding: .18rem 0; text-align: center; color: inherit;
          text-decoration: none;
          font-weight: 650;
        }
        .wide td a { min-width: 1.8rem; }
        td a:hover, td a:focus-visible { outline: 2px solid var(--link); outline-offset: -2px; }
        tr.reference > *, tr.ours > * { border-top: 1px solid var(--line); }
        tr.ours th { font-weight: 700; }

        .row { border-top: 2px solid var(--line); margin-top: 3rem; content-visibility: auto;
        contain-intrinsic-size: auto 60rem; }
        .row > h2 { margin-top: 1rem; overflow-wrap: anywhere; }
        .cell, .cell > summary { display: flex; gap: .6rem; align-items: baseline; }
        details.cell { display: block; }
        .cell { padding: .2rem .3rem; border-radius: .3rem; }
        .cell > summary { cursor: pointer; list-style: none; }
        .cell > summary::-webkit-details-marker { display: none; }
        .cell > summary::after { content: "▸"; color: var(--soft); margin-left: auto; }
        .cell[open] > summary::after { content: "▾"; }
        details.cell:hover, .cell[open] { background: var(--sunk); }
        .line b { font-weight: 600; font-size: .9rem; margin-right: .4rem; }
        .cell > ol, .cell > .sentence { margin-left: 2.2rem; }
        .sentence { margin: .5rem 0; }
        .column:target > h3, .row:target > h2 { color: var(--link); }
        .cell:target { outline: 2px solid var(--link); }

        ol { list-style: none; margin: .5rem 0 1rem; padding: 0; display: grid; gap: .6rem; }
        li.victim, li.attacker, li.server { border-left: 3px solid var(--line); padding-left: .8rem;
        min-width: 0; }
        li.attacker { border-color: var(--fell); }
        li.victim { border-color: var(--link); }
        li p { margin: 0; }
        li .cut, li.cut { font-size: .85rem; }
        pre {
          margin: .25rem 0 0; padding: .5rem .7rem; background: var(--page); border: 1px solid var(--line);
          border-radius: .3rem;
          font-size: .8rem; line-height: 1.4; white-space: pre-wrap; overflow-wrap: anywhere;
          max-height: 24rem; overflow-y: auto;
        }

        @media (max-width: 42rem) {
          body { padding-top: 1rem; }
          h1 { font-size: 1.6rem; }
          table { font-size: .75rem; }
          tbody th { min-width: 7.5rem; max-width: 7.5rem; white-space: normal; overflow-wrap: break-word;
          padding: .1rem .4rem; }
          td a { min-width: 1.9rem; }
          .line b { display: block; }
          .cell > ol, .cell > .sentence { margin-left: 0; }
        }
        @media print { .scroll { max-height: none; overflow: visible; } .row { content-visibility: visible;
        } }

        """
}
