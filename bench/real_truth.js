// Returns what the window shows, from the DOM: words, controls with states, tables, headings, icons, code.
// Boxes are [x, y, right, bottom] in pixels of the picture.
(() => {
    const scale = devicePixelRatio, wide = innerWidth, high = innerHeight;
    const inWindow = r => r.width > 0 && r.height > 0 && r.left >= 0 && r.top >= 0 && r.right <= wide && r.bottom <= high;
    const toBox = r => [r.left, r.top, r.right, r.bottom].map(v => Math.round(v * scale));
    const isShown = e => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    // Whether no element around it hides a rectangle by its own size.
    const isUnclipped = (e, r) => {
        for (let p = e; p && p !== document.body; p = p.parentElement) {
            if (getComputedStyle(p).overflow === 'visible') continue;
            const c = p.getBoundingClientRect();
            if (r.left < c.left - 1 || r.top < c.top - 1 || r.right > c.right + 1 || r.bottom > c.bottom + 1) return false;
        }
        return true;
    };
    // Whether an element, or something in it or around it, is on top at the middle of a rectangle.
    const isOnTop = (e, r) => {
        const top = document.elementsFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2);
        return top.length > 0 && isUnclipped(e, r) && (e.contains(top[0]) || top[0].contains(e) || top.slice(0, 3).includes(e));
    };
    const isSeen = e => { const r = e.getBoundingClientRect(); return inWindow(r) && isShown(e) && isOnTop(e, r); };
    const clean = t => t.replace(/\s+/g, ' ').trim();
    const isPrivate = c => c >= '\ue000' && c <= '\uf8ff';

    const unread = /[\u0370-\u1fff\uac00-\ud7af]/;  // scripts that the reader does not know
    const words = [];
    const addWords = (node, element, line) => {
        const text = node.data, range = document.createRange(), transform = getComputedStyle(element).textTransform;
        const write = t => transform === 'uppercase' ? t.toUpperCase() : transform === 'lowercase' ? t.toLowerCase()
            : transform === 'capitalize' ? t.replace(/(^|[^\p{L}\d'])(\p{L})/gu, (all, a, b) => a + b.toUpperCase()) : t;
        for (const match of text.matchAll(/[^\s\u00a0]+/g)) {
            if ([...match[0]].some(c => isPrivate(c)) || unread.test(match[0])) continue;
            range.setStart(node, match.index);
            range.setEnd(node, match.index + match[0].length);
            const rects = [...range.getClientRects()].filter(r => r.width > 0.5);
            if (rects.length !== 1 || !inWindow(rects[0]) || !isOnTop(element, rects[0])) continue;
            words.push({ text: write(match[0]), box: toBox(rects[0]), block: line });
        }
    };
    const blockOf = e => { while (e && getComputedStyle(e).display.startsWith('inline')) e = e.parentElement; return e; };
    const blocks = new Map();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const e = node.parentElement;
        if (!e || /^(SCRIPT|STYLE|NOSCRIPT|OPTION|TEXTAREA|TITLE)$/.test(e.tagName) || !node.data.trim() || !isShown(e)) continue;
        const style = getComputedStyle(e);
        if (style.color === 'rgba(0, 0, 0, 0)' || parseFloat(style.fontSize) < 6) continue;
        const block = blockOf(e);
        if (!blocks.has(block)) blocks.set(block, blocks.size);
        addWords(node, e, blocks.get(block));
    }

    const all = selector => [...document.querySelectorAll(selector)];
    const transparent = c => /^rgba\(.*, 0\)$/.test(c) || c === 'transparent';
    const hasFrame = e => {
        const s = getComputedStyle(e);
        const border = ['Top', 'Left', 'Bottom', 'Right'].every(side => parseFloat(s[`border${side}Width`]) > 0 &&
            s[`border${side}Style`] !== 'none' && !transparent(s[`border${side}Color`]));
        if (border || s.backgroundImage !== 'none') return true;
        if (/inset|0px 0px 0px 1px/.test(s.boxShadow)) return true;
        if (transparent(s.backgroundColor)) return false;
        let p = e.parentElement;
        while (p && transparent(getComputedStyle(p).backgroundColor)) p = p.parentElement;
        return !p || getComputedStyle(p).backgroundColor !== s.backgroundColor;
    };
    const isOff = e => e.matches(':disabled, [aria-disabled=true], .disabled');
    const labelOf = e => clean((e.labels && [...e.labels].map(l => l.innerText).join(' ')) || e.getAttribute('aria-label') || e.closest('label')?.innerText || '');
    const controls = [];
    const add = (kind, e, more) => controls.push({ kind, box: toBox(e.getBoundingClientRect()), disabled: isOff(e), ...more });

    // Buttons: what is pressed, framed and written on. Other things that can be pressed are not asked for, nor wrong.
    for (const e of all('button, a, summary, [role=button], [role=tab], input[type=submit], input[type=button], input[type=reset], label.btn, .btn, .button, [onclick]')) {
        if (!isSeen(e)) continue;
        const text = clean(e.innerText || e.value || ''), r = e.getBoundingClientRect();
        const button = (/^(BUTTON|INPUT)$/.test(e.tagName) || e.matches('[role=button], .btn, .button, [class*=-button]')) && hasFrame(e);
        add(button && text && text.length < 40 && r.height <= 72 ? 'button' : 'pressable', e, { text });
    }
    for (const e of all('input, textarea, select, [role=combobox], [role=textbox], [role=searchbox], [role=spinbutton], [contenteditable=true]')) {
        if (e.matches('[type=checkbox], [type=radio], [type=hidden], [type=submit], [type=button], [type=reset], [type=range], [type=color], [type=file], [type=image]')) continue;
        if (!isSeen(e)) continue;
        let frame = e;
        for (let up = 0; up < 3 && frame && !hasFrame(frame); up++) frame = frame.parentElement;
        const value = e.tagName === 'SELECT' ? e.selectedOptions[0]?.text : e.value || e.placeholder || '';
        const box = (frame || e).getBoundingClientRect();
        const asked = frame && hasFrame(frame) && inWindow(box) && box.height <= 80 && !e.matches('[multiple], [size]');
        controls.push({ kind: asked ? 'field' : 'input', box: toBox(box), inner: toBox(e.getBoundingClientRect()), disabled: isOff(e), text: clean(e.type === 'password' ? '' : value || '') });
    }
    // Where a positioned pseudo-element is counted from: its element, or what is around that, if that is positioned.
    const findOrigin = n => {
        let p = n;
        while (p.parentElement && getComputedStyle(p).position === 'static' && getComputedStyle(p).transform === 'none') p = p.parentElement;
        const r = p.getBoundingClientRect();
        return [r.left + p.clientLeft, r.top + p.clientTop];
    };
    // The padding and border of a pseudo-element, which its width does not count.
    const addEdges = (s, a, b) => s.boxSizing === 'border-box' ? 0 : [`border${a}Width`, `border${b}Width`, `padding${a}`, `padding${b}`].reduce((sum, k) => sum + (parseFloat(s[k]) || 0), 0);
    const isSmallShape = (e, b) => b && b.width >= 10 && b.width <= 80 && b.height >= 10 && b.height <= 48 && !clean(e.innerText || '');
    const isSwitch = e => [e, e.parentElement, e.parentElement?.parentElement].some(n => n && /switch|toggles|toggle-?(slider|wrapper)|custom-toggle/i.test(n.className + (n.getAttribute('role') === 'switch' ? ' switch' : '')));
    // Where a pseudo-element of the size of a toggle is drawn, if there is one; of a switch, its track rather than its thumb.
    const findPseudo = (n, wanted) => {
        const found = listPseudos(n);
        return (isSwitch(wanted) && found.find(b => b.width >= 1.4 * b.height)) || found[0] || null;
    };
    const listPseudos = n => {
        const found = [];
        for (const pseudo of ['::before', '::after']) {
            const s = getComputedStyle(n, pseudo), w = parseFloat(s.width), h = parseFloat(s.height);
            if (s.content === 'none' || !(w >= 10 && h >= 10 && w <= 70 && h <= 40)) continue;
            const at = n.getClientRects()[0] || n.getBoundingClientRect(), [x, y] = findOrigin(n), wide = w + addEdges(s, 'Left', 'Right'), tall = h + addEdges(s, 'Top', 'Bottom');
            const moved = s.position === 'absolute' && s.transform !== 'none' ? new DOMMatrix(s.transform) : new DOMMatrix();
            const left = s.position === 'absolute' && s.left !== 'auto' ? x + parseFloat(s.left) + (parseFloat(s.marginLeft) || 0) : at.left;
            const top = s.position === 'absolute' && s.top !== 'auto' ? y + parseFloat(s.top) + (parseFloat(s.marginTop) || 0) : at.top + (at.height - tall) / 2;
            found.push(new DOMRect(left + moved.e, top + moved.f, wide, tall));
        }
        return found;
    };
    // A small empty shape in an element: drawn by an element with a frame, or by a pseudo-element of an empty one.
    const findShape = (root, wanted) => {
        for (const n of root.querySelectorAll('*')) {
            const b = n.getBoundingClientRect();
            if (!isShown(n) || clean(n.innerText || '') || n.tagName === 'INPUT') continue;
            if (isSmallShape(n, b) && (b.height <= 32 || b.width >= 1.4 * b.height) && (hasFrame(n) || (n.tagName === 'svg' && root === wanted))) return b;
            const drawn = findPseudo(n, wanted);
            if (drawn) return drawn;
        }
        return null;
    };
    // The track of a switch, where an element around a toggle is called one.
    const findTrack = e => {
        let around = e;
        for (let up = 0; up < 6 && around; up++, around = around.parentElement) {
            if (around.getBoundingClientRect().height > 80) return null;
            if (!/switch/i.test(around.getAttribute('class') || '')) continue;
            const shapes = [...around.querySelectorAll('*')].filter(n => isShown(n) && isSmallShape(n, n.getBoundingClientRect()) && hasFrame(n)).map(n => n.getBoundingClientRect());
            const track = shapes.filter(b => b.width >= 1.4 * b.height).sort((a, b) => b.width - a.width)[0];
            if (track) return track;
        }
        return null;
    };
    // Check boxes, radio buttons and switches; many are drawn by a neighbour of an input that is hidden.
    for (const e of all('input[type=checkbox], input[type=radio], [role=checkbox], [role=radio], [role=switch]')) {
        let r = e.getBoundingClientRect(), drawn = null;
        if (/color/.test(e.className)) continue;  // a patch of colour to choose
        if (e.closest('[class*=rating], [class*=stars]')) continue;  // a star
        if (e.parentElement?.closest('[role=checkbox], [role=radio], [role=switch]')) continue;  // it is counted itself
        const style = getComputedStyle(e), hidden = parseFloat(style.opacity) < 0.1 || style.clip !== 'auto' || style.clipPath !== 'none';
        const own = isShown(e) && !hidden && r.width >= 8 && r.height >= 8 && r.right > 0;
        if (own) drawn = e.tagName !== 'INPUT' && (r.width > 80 || clean(e.innerText)) ? findShape(e, e) : r;
        else {
            const next = e.nextElementSibling, last = e.previousElementSibling, near = [next, next?.querySelector('label'), e.closest('label'), e.previousElementSibling, e.parentElement].filter(Boolean);
            const b = next?.getBoundingClientRect(), before = last?.getBoundingClientRect();
            if (isSmallShape(next, b)) drawn = b;
            else if (!next && isSmallShape(last, before)) drawn = before;
            for (const n of near) drawn ||= findPseudo(n, e);
            for (const n of [next, e.closest('label'), e.parentElement].filter(Boolean)) drawn ||= findShape(n, e);
        }
        if (drawn && drawn.width < 1.4 * drawn.height) drawn = findTrack(e) || drawn;
        if (!drawn || !inWindow(drawn)) continue;
        const around = own ? e : e.parentElement;
        if (!around || !isShown(around) || !(isOnTop(around, drawn) || isOnTop(around.parentElement, drawn)) || drawn.width > 80) continue;
        const named = isSwitch(e);
        const slim = drawn.width / drawn.height;
        const kind = slim >= 1.4 ? (named || slim <= 2.6 ? 'switch' : null) : (e.type === 'radio' || e.getAttribute('role') === 'radio') ? 'radio' : 'check';
        const checked = e.indeterminate ? null : 'checked' in e ? e.checked : e.getAttribute('aria-checked') === 'true';
        if (kind) controls.push({ kind, box: toBox(drawn), checked, disabled: isOff(e), text: labelOf(e).slice(0, 80) });
    }

    const tables = [];
    for (const t of all('table, [role=grid], [role=table], [role=treegrid]')) {
        if (!isShown(t) || t.querySelector('table') || t.closest('.monaco-editor, .CodeMirror, .ace_editor, .cm-editor')) continue;
        const rows = [];
        for (const row of t.matches('table') ? t.rows : t.querySelectorAll('[role=row]')) {
            const cells = [...(t.matches('table') ? row.cells : row.querySelectorAll('[role=cell], [role=gridcell], [role=columnheader], [role=rowheader]'))]
                .map(c => ({ text: clean(c.innerText || ''), box: toBox(c.getBoundingClientRect()), shown: isSeen(c), span: c.colSpan || 1 }));
            if (cells.some(c => c.shown)) rows.push(cells);
        }
        const seen = rows.map(r => r.filter(c => c.shown)).filter(r => r.length);
        const full = seen.filter(r => r.filter(c => c.text).length >= 2);
        const boxes = seen.flat().map(c => c.box);
        if (!boxes.length) continue;
        const box = [0, 1, 2, 3].map(i => (i < 2 ? Math.min : Math.max)(...boxes.map(b => b[i])));
        tables.push({ box, asked: full.length >= 3 && seen.every((r, i) => r.length <= 14), rows: seen.map(r => r.map(c => [c.text, c.box])) });
    }

    const seenBox = e => ({ box: toBox(e.getBoundingClientRect()), text: clean(e.innerText || e.value || '').slice(0, 80) });
    const headings = all('h1, h2, h3, h4, h5, h6').filter(e => isSeen(e) && clean(e.innerText)).map(e => ({ ...seenBox(e), level: +e.tagName[1], size: parseFloat(getComputedStyle(e).fontSize) * scale }));

    // A class of its own that says so, in words of its package, which most of its neighbours have not.
    const hasOwnClass = e => [...e.classList].some(c => /(^|[-_])(active|selected)(-(top|bottom|left|right))?$/.test(c) &&
        [...e.parentElement.children].filter(n => n.classList.contains(c)).length * 2 < e.parentElement.children.length);
    const selected = e => (hasOwnClass(e) || e.matches('[aria-selected=true], [aria-current]:not([aria-current=false]), .active, .selected, .is-active, .is-selected, .uk-active, .menu-item--active')) && !e.closest('.breadcrumb, [class*=breadcrumb]');
    const states = [];
    for (const e of all('a, button, li, tr, [role=tab], [role=option], [role=menuitem], .item, .nav-link, input, select, textarea')) {
        if (!isSeen(e) || !clean(e.innerText || e.value || e.placeholder || '') || e.getBoundingClientRect().height > 90) continue;
        if (e.querySelector('a, button, li, tr, [role=tab]') && e.tagName !== 'TR') continue;
        const on = selected(e) || (e.parentElement && e.parentElement.matches('li, .nav-item') && selected(e.parentElement));
        const kind = isOff(e) ? 'disabled' : on ? 'selected' : null;
        const mates = e.parentElement && (e.parentElement.matches('li, .nav-item') ? e.parentElement.parentElement : e.parentElement).children.length;
        if (kind && (kind === 'disabled' || mates > 1)) states.push({ kind, tag: e.tagName, ...seenBox(e) });
        else if (!kind) states.push({ kind: 'plain', tag: e.tagName, ...seenBox(e) });
    }

    const icons = [];
    for (const e of all('svg, i, img, [class*=icon], [class*=fa-], .caret, .material-icons, span.material-symbols-rounded')) {
        const r = e.getBoundingClientRect();
        if (r.width > 48 || r.height > 48 || r.width < 5 || r.height < 5 || !isSeen(e)) continue;
        const text = clean(e.innerText || '');
        if (e.tagName !== 'svg' && e.tagName !== 'IMG' && [...text].some(c => !isPrivate(c)) && !/material/.test(e.className)) continue;
        icons.push(toBox(r));
    }
    const pictures = all('img, canvas, video, svg, picture').filter(e => { const r = e.getBoundingClientRect(); return isShown(e) && r.width > 48 && r.height > 48 && r.bottom > 0 && r.top < high; }).map(e => toBox(e.getBoundingClientRect()));

    // Code: lines as they stand, with the number that an editor writes beside each.
    const code = [];
    const addCode = (lines, numbers) => { if (lines.length >= 3) code.push({ lines, numbers }); };
    for (const pre of all('pre')) {
        if (!isSeen(pre) || pre.closest('.monaco-editor, .CodeMirror, .ace_editor, .cm-editor')) continue;
        const style = getComputedStyle(pre);
        if (style.whiteSpace !== 'pre' || pre.querySelector('table')) continue;
        const lines = pre.innerText.replace(/\n+$/, '').split('\n'), r = pre.getBoundingClientRect();
        if (lines.length >= 3) addCode(lines.map(t => ({ text: t.replace(/\t/g, '        ') })), false);
    }
    const editors = [['.view-line', '.line-numbers', '.monaco-editor'], ['.CodeMirror-line', '.CodeMirror-linenumber', '.CodeMirror'], ['.ace_line', '.ace_gutter-cell', '.ace_editor'], ['.cm-line', '.cm-lineNumbers .cm-gutterElement', '.cm-editor']];
    for (const [line, number, editor] of editors) for (const e of all(editor)) {
        if (!isSeen(e)) continue;
        const textRect = l => { const range = document.createRange(); range.selectNodeContents(l); const r = range.getBoundingClientRect(); return r.width ? r : l.getBoundingClientRect(); };
        const isIn = l => { const r = l.getBoundingClientRect(), t = textRect(l); return r.top >= 0 && r.bottom <= high && r.height > 0 && t.left >= 0 && (t.right <= wide || !clean(l.innerText)); };
        const numbers = [...e.querySelectorAll(number)].map(n => [n.getBoundingClientRect().top, clean(n.innerText)]).filter(n => n[1]);
        const lines = [...e.querySelectorAll(line)].filter(isIn).sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
            .map(l => ({ text: l.innerText.replace(/\u00a0/g, ' ').replace(/[\u200b\n]/g, ''), number: (numbers.find(n => Math.abs(n[0] - l.getBoundingClientRect().top) < 6) || [0, ''])[1] }));
        addCode(lines, numbers.length > 0);
    }
    return { words, controls, tables, headings, states, icons, pictures, code };
})()
