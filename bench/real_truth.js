// Returns what the window shows, from the DOM: words, controls with states, tables, headings, icons, code.
// Boxes are [x, y, right, bottom] in pixels of the picture.
(() => {
    const scale = devicePixelRatio, wide = innerWidth, high = innerHeight;
    const inWindow = r => r.width > 0 && r.height > 0 && r.left >= 0 && r.top >= 0 && r.right <= wide && r.bottom <= high;
    const toBox = r => [r.left, r.top, r.right, r.bottom].map(v => Math.round(v * scale));
    const isShown = e => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    // What points pass through counts too in elementsFromPoint, since it is drawn.
    const solid = document.createElement('style');
    solid.textContent = '* { pointer-events: auto !important }';
    document.head.append(solid);
    // The part of a rectangle that the elements around it leave, or null; without the end of the line where
    // an ellipsis is, if that does not count.
    const clip = (e, r, isDotted = false) => {
        let [left, top, right, bottom] = [r.left, r.top, r.right, r.bottom], position = 'static';
        for (let p = e; p && p !== document.body; p = p.parentElement) {
            const s = getComputedStyle(p), isOrigin = s.transform !== 'none' || (position === 'absolute' && s.position !== 'static');
            if (/absolute|fixed/.test(position) && !isOrigin) continue;  // what is positioned is clipped by its origin only
            position = s.position;
            if (s.overflow === 'visible') continue;
            const c = p.getBoundingClientRect();
            const dots = !isDotted && s.textOverflow === 'ellipsis' && p.scrollWidth > p.clientWidth + 1 ? parseFloat(s.fontSize) : 0;
            [left, top, right, bottom] = [Math.max(left, c.left - 1), Math.max(top, c.top - 1), Math.min(right, c.right + 1 - dots), Math.min(bottom, c.bottom + 1)];
        }
        return right > left && bottom > top ? new DOMRect(left, top, right - left, bottom - top) : null;
    };
    const isUnclipped = (e, r) => { const c = clip(e, r); return c && c.width >= r.width - 0.1 && c.height >= r.height - 0.1; };
    const getAlpha = c => c.startsWith('rgba(') ? parseFloat(c.split(',')[3]) : c.startsWith('rgb(') ? 1 : 0;
    // How opaque a background is: its colour, or a gradient over all of it, which is as opaque as its clearest colour.
    const getCover = s => {
        const stops = s.backgroundImage.includes('gradient(') ? s.backgroundImage.match(/rgba?\([^)]*\)/g) || [] : [];
        return Math.max(getAlpha(s.backgroundColor), stops.length ? Math.min(...stops.map(getAlpha)) : 0);
    };
    // Whether nothing can be seen through an element.
    const isOpaque = e => {
        const s = getComputedStyle(e);
        let alpha = e.matches('img, video, iframe') ? 1 : e instanceof SVGGeometryElement ? getAlpha(s.fill) * s.fillOpacity : getCover(s);
        for (let p = e; p && alpha > 0.5; p = p.parentElement) alpha *= getComputedStyle(p).opacity;
        return alpha > 0.5 && s.visibility === 'visible';
    };
    // Whether an element, or something in it or around it, can be seen at a point; its own text may be covered by what is in it.
    const isSeenAt = (e, x, y, isText = false) => {
        for (const top of document.elementsFromPoint(x, y)) {
            if (top.contains(e) || (!isText && e.contains(top))) return true;
            if (isOpaque(top)) return false;
        }
        return false;
    };
    const isOnTop = (e, r) => isUnclipped(e, r) && isSeenAt(e, (r.left + r.right) / 2, (r.top + r.bottom) / 2);
    const isSeen = e => { const r = e.getBoundingClientRect(); return inWindow(r) && isShown(e) && isOnTop(e, r); };
    const clean = t => t.replace(/\s+/g, ' ').trim();
    const isPrivate = c => c >= '\ue000' && c <= '\uf8ff';

    const unread = /[\u0370-\u1fff\uac00-\ud7af]/;  // scripts that the reader does not know
    const words = [];
    const unknown = [];  // where something is drawn that cannot be told from the DOM, or not by anyone
    const addUnknown = (e, r) => {
        const c = r.width > 0 && r.height > 0 && clip(e, r, true);
        if (c && isSeenAt(e, (c.left + c.right) / 2, (c.top + c.bottom) / 2)) unknown.push(toBox(c));
    };
    // Whether a Chinese or Japanese letter is drawn as the box of a letter that no font has: another one looks the same.
    const boxes = new Map(), chinese = /[\u2e80-\u9fff\uf900-\ufaff]/;
    const drawLetter = (letter, font) => {
        const canvas = new OffscreenCanvas(40, 40), pen = canvas.getContext('2d');
        pen.font = font;
        pen.fillText(letter, 4, 30);
        return pen.getImageData(0, 0, 40, 40).data.join();
    };
    const isBox = (letter, family) => {
        const font = `24px ${family}`, key = letter + font, other = letter === '\u9f98' ? '\u4e00' : '\u9f98';
        if (!boxes.has(key)) boxes.set(key, drawLetter(letter, font) === drawLetter(other, font));
        return boxes.get(key);
    };
    const hasBoxes = (text, e) => chinese.test(text) && [...text].some(c => chinese.test(c) && isBox(c, getComputedStyle(e).fontFamily));
    // Adds a word that can be seen whole; one that is cut, partly covered or in letters that no font has is unknown.
    const addWord = (text, element, r, block) => {
        if (!inWindow(r)) return;
        if (hasBoxes(text, element)) return addUnknown(element, r);
        const inset = Math.min(2, r.width / 4), columns = [r.left + inset, (r.left + r.right) / 2, r.right - inset];
        const points = columns.flatMap(x => [0.3, 0.7].map(y => isSeenAt(element, x, r.top + y * r.height, true)));
        if (isUnclipped(element, r) && points.every(Boolean)) words.push({ text, box: toBox(r), block });
        else if (points.some(Boolean)) addUnknown(element, r);
    };
    const transformText = (t, transform) => transform === 'uppercase' ? t.toUpperCase() : transform === 'lowercase' ? t.toLowerCase()
        : transform === 'capitalize' ? t.replace(/(^|[^\p{L}\d'])(\p{L})/gu, (all, a, b) => a + b.toUpperCase()) : t;
    const enclose = (a, b) => {
        const left = Math.min(a.left, b.left), top = Math.min(a.top, b.top);
        return new DOMRect(left, top, Math.max(a.right, b.right) - left, Math.max(a.bottom, b.bottom) - top);
    };
    // The parts of a word, one for each line that it is on, with their rectangles. Of a part that goes back to the left,
    // with numbers in a script that is written to the left, there is no text.
    const splitWord = (node, start, text) => {
        const range = document.createRange(), pieces = [];
        const measure = (from, to) => { range.setStart(node, from); range.setEnd(node, to); return [...range.getClientRects()].filter(r => r.width > 0.5); };
        const whole = measure(start, start + text.length);
        if (whole.length < 2) return whole.map(r => [text, r]);
        let at = start;
        for (const letter of text) {
            const r = measure(at, at += letter.length)[0], last = pieces.at(-1);
            if (!r && last) last[0] &&= last[0] + letter;
            else if (last && r.top < last[1].bottom - 2) pieces[pieces.length - 1] = [r.left < last[1].right - 2 ? null : last[0] && last[0] + letter, enclose(last[1], r)];
            else if (r) pieces.push([letter, r]);
        }
        return pieces;
    };
    const addWords = (node, element, block) => {
        const transform = getComputedStyle(element).textTransform;
        for (const match of node.data.matchAll(/[^\s\u00a0]+/g)) {
            if ([...match[0]].some(c => isPrivate(c)) || unread.test(match[0])) continue;
            for (const [text, r] of splitWord(node, match.index, match[0])) {
                if (text) addWord(transformText(text, transform), element, r, block);
                else addUnknown(element, r);
            }
        }
    };
    // What measures text in a style.
    const openPen = s => {
        const pen = document.createElement('canvas').getContext('2d');
        pen.font = s.font;
        pen.letterSpacing = s.letterSpacing === 'normal' ? '0px' : s.letterSpacing;
        return pen;
    };
    // Words of an input that is a button: its value is in the middle of one line.
    const addValue = (e, block) => {
        const s = getComputedStyle(e), r = e.getBoundingClientRect(), pen = openPen(s);
        const value = e.getAttribute('value') ?? { submit: 'Submit', reset: 'Reset' }[e.type] ?? '';
        const text = transformText(clean(value), s.textTransform), all = pen.measureText(text);
        const edge = side => parseFloat(s[`padding${side}`]) + parseFloat(s[`border${side}Width`]);
        const high = all.fontBoundingBoxAscent + all.fontBoundingBoxDescent;
        const left = r.left + (edge('Left') + r.width - edge('Right') - all.width) / 2, top = r.top + (edge('Top') + r.height - edge('Bottom') - high) / 2;
        if (s.textAlign !== 'center' || left < r.left) return addUnknown(e, r);
        for (const match of text.matchAll(/\S+/g)) addWord(match[0], e, new DOMRect(left + pen.measureText(text.slice(0, match.index)).width, top, pen.measureText(match[0]).width, high), block);
    };
    // The marker of a list's item: a number left of it is a word.
    const addMarker = (e, s, own, first) => {
        const size = parseFloat(s.fontSize), left = own.left - 2.5 * size, pen = openPen(s), list = e.parentElement;
        if (s.listStyleType === 'decimal' && s.listStylePosition === 'outside' && list.matches('ol:not([reversed])') && s.direction === 'ltr') {
            let number = list.start - 1;
            for (let item = list.firstElementChild; item; item = item === e ? null : item.nextElementSibling) number = item.hasAttribute('value') ? item.value : number + 1;
            const right = own.left - pen.measureText(' ').width, wide = pen.measureText(`${number}.`).width;
            addWord(`${number}.`, list, new DOMRect(right - wide, first.top, wide, first.height), numberBlock(e));
        } else addUnknown(list, new DOMRect(left, first.top, (s.listStylePosition === 'inside' ? first.left : own.left) - left, Math.min(first.height, 2 * size)));
    };
    // Other markers and the texts of style sheets are drawn, but the DOM says nothing of where: about where they are.
    const addGenerated = e => {
        const own = e.getClientRects()[0], range = document.createRange();
        if (!own) return;
        range.selectNodeContents(e);
        const inner = [...range.getClientRects()].filter(r => r.width > 0), s = getComputedStyle(e);
        if (s.display === 'list-item' && s.listStyleType !== 'none' && s.listStyleImage === 'none' && e.parentElement) addMarker(e, s, own, inner[0] || own);
        for (const pseudo of ['::before', '::after']) {
            const p = getComputedStyle(e, pseudo), last = [...e.getClientRects()].at(-1), start = inner[0], end = inner.at(-1), most = p.content.length * parseFloat(p.fontSize);
            if (!/^"|^counter|^attr/.test(p.content) || p.display === 'none' || ![...p.content.replace(/^"|"$/g, '')].some(c => c.trim() && !isPrivate(c))) continue;
            if (p.position === 'absolute' || p.position === 'fixed') addUnknown(e, placePseudo(e, p));
            else if (!inner.length) addUnknown(e, own);
            else if (pseudo === '::before') addUnknown(e, new DOMRect(Math.max(own.left, start.left - most), start.top, Math.min(most, start.left - own.left), start.height));
            else addUnknown(e, new DOMRect(end.right, end.top, Math.min(most, last.right - end.right), end.height));
        }
    };
    // Where a positioned pseudo-element is counted from: its element, or what is around that, if that is positioned.
    const findOrigin = n => {
        let p = n;
        while (p.parentElement && getComputedStyle(p).position === 'static' && getComputedStyle(p).transform === 'none') p = p.parentElement;
        const r = p.getBoundingClientRect();
        return [r.left + p.clientLeft, r.top + p.clientTop];
    };
    // The padding and border of a pseudo-element, which its width does not count.
    const addEdges = (s, a, b) => s.boxSizing === 'border-box' ? 0 : [`border${a}Width`, `border${b}Width`, `padding${a}`, `padding${b}`].reduce((sum, k) => sum + (parseFloat(s[k]) || 0), 0);
    // The rectangle of a pseudo-element that has a size, from its style.
    const placePseudo = (n, s) => {
        const at = n.getClientRects()[0] || n.getBoundingClientRect(), [x, y] = findOrigin(n), wide = parseFloat(s.width) + addEdges(s, 'Left', 'Right'), tall = parseFloat(s.height) + addEdges(s, 'Top', 'Bottom');
        const moved = s.position === 'absolute' && s.transform !== 'none' ? new DOMMatrix(s.transform) : new DOMMatrix();
        const left = s.position === 'absolute' && s.left !== 'auto' ? x + parseFloat(s.left) + (parseFloat(s.marginLeft) || 0) : at.left;
        const top = s.position === 'absolute' && s.top !== 'auto' ? y + parseFloat(s.top) + (parseFloat(s.marginTop) || 0) : at.top + (at.height - tall) / 2;
        return new DOMRect(left + moved.e, top + moved.f, wide, tall);
    };
    const blockOf = e => { while (e && getComputedStyle(e).display.startsWith('inline')) e = e.parentElement; return e; };
    const blocks = new Map();
    const numberBlock = e => { const block = blockOf(e); if (!blocks.has(block)) blocks.set(block, blocks.size); return blocks.get(block); };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const isText = node.nodeType === Node.TEXT_NODE, e = isText ? node.parentElement : node;
        if (!e || /^(SCRIPT|STYLE|NOSCRIPT|OPTION|TEXTAREA|TITLE)$/.test(e.tagName) || (isText && !node.data.trim()) || !isShown(e)) continue;
        const style = getComputedStyle(e);
        if (style.color === 'rgba(0, 0, 0, 0)' || parseFloat(style.fontSize) < 6) continue;
        if (isText) addWords(node, e, numberBlock(e));
        else if (e.matches('input[type=submit], input[type=button], input[type=reset]')) addValue(e, numberBlock(e));
        else addGenerated(e);
    }
    // Texts that are drawn across each other cannot be told: the middles of their boxes overlap.
    const cross = (a, b) => {
        const wide = Math.min(a[2], b[2]) - Math.max(a[0], b[0]), high = [a, b].map(r => (r[3] - r[1]) / 4);
        return wide > 0.2 * Math.min(a[2] - a[0], b[2] - b[0]) && Math.min(a[3] - high[0], b[3] - high[1]) > Math.max(a[1] + high[0], b[1] + high[1]);
    };
    const crossed = words.filter(one => words.some(other => other.text !== one.text && cross(one.box, other.box)));
    unknown.push(...crossed.map(word => word.box));
    const told = words.filter(word => !crossed.includes(word));

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
    // Whether a control or an item is disabled: it says so, or what is around it alone has a class that does.
    const saysOff = n => n && [...n.classList].some(c => /(^|[-_])disabled$/i.test(c));
    const isAlone = n => n && n.querySelectorAll('a, button, input, select, textarea, [role=checkbox], [role=radio], [role=switch]').length <= 1;
    const isOff = e => e.matches(':disabled, [aria-disabled=true]') || saysOff(e) || [e.parentElement, e.parentElement?.parentElement].some(n => saysOff(n) && isAlone(n));
    // What a style draws around a text: background, borders, shadow, outline; a colour may be of any kind.
    const isVisible = c => c !== 'transparent' && !/[,/] 0\)$/.test(c);
    const listEdges = s => ['Top', 'Right', 'Bottom', 'Left'].map(side => parseFloat(s[`border${side}Width`]) > 0 && s[`border${side}Style`] !== 'none' && isVisible(s[`border${side}Color`]) ? `${side} ${s[`border${side}Width`]} ${s[`border${side}Color`]}` : '')
        .concat(isVisible(s.backgroundColor) ? s.backgroundColor : '', s.backgroundImage === 'none' ? '' : s.backgroundImage, s.boxShadow === 'none' ? '' : s.boxShadow,
            s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 ? s.outlineColor : '').filter(Boolean);
    const isDrawn = s => s.content !== 'none' && s.content !== 'normal' && s.display !== 'none' && s.visibility === 'visible' && s.opacity > 0.02 && !/^matrix\(0,|, 0, 0, 0, /.test(s.transform);
    // How an item looks, with what is around it up to `top`: inks, weights and edges, whatever its texts say.
    const listLooks = (item, top) => {
        const around = [], looks = new Set();
        for (let n = item; n !== top; n = n.parentElement) around.push(n.parentElement);
        for (const n of [...around, item, ...item.querySelectorAll('*')]) {
            const s = getComputedStyle(n), r = n.getBoundingClientRect();
            if (!isShown(n) || r.width < 1 || r.height < 1) continue;
            if (n.matches('input, select, textarea, button') || [...n.childNodes].some(c => c.nodeType === Node.TEXT_NODE && c.data.trim())) looks.add(`ink ${s.color} ${s.fontWeight} ${s.fontStyle} ${s.textDecorationLine}`);
            if (s.opacity !== '1' || s.filter !== 'none') looks.add(`seen through ${s.opacity} ${s.filter}`);
            if (n instanceof SVGGeometryElement) looks.add(`drawn ${s.fill} ${s.stroke}`);
            for (const edge of listEdges(s)) looks.add(edge);
            for (const pseudo of ['::before', '::after']) {
                const p = getComputedStyle(n, pseudo);
                if (!isDrawn(p)) continue;
                if (/[^"]/.test(p.content.replace(/^"|"$/g, ''))) looks.add(`mark ${p.color} ${p.opacity}`);
                if (parseFloat(p.width) + addEdges(p, 'Left', 'Right') > 0 && parseFloat(p.height) + addEdges(p, 'Top', 'Bottom') > 0) for (const edge of listEdges(p)) looks.add(`${pseudo} ${edge}`);
            }
        }
        return [...looks].sort().join('; ');
    };
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
            found.push(placePseudo(n, s));
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
    const saysSelected = c => /(^|[-_ ])((row|item)?selected|active|current|pressed|this)([-_ ](top|bottom|left|right|page|item|row))?$/.test(c.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase());
    const hasOwnClass = e => e.parentElement && [...e.classList].some(c => saysSelected(c) &&
        [...e.parentElement.children].filter(n => n.classList.contains(c)).length * 2 < e.parentElement.children.length);
    const selected = e => (hasOwnClass(e) || e.matches('[aria-selected=true], [aria-pressed=true], [aria-current]:not([aria-current=false]), .active, .selected, .is-active, .is-selected, .uk-active, .menu-item--active')) && !e.closest('.breadcrumb, [class*=breadcrumb]');
    const ITEMS = 'a, button, li, tr, [role=tab], [role=option], [role=menuitem], .item, .nav-link, input, select, textarea';
    // Whether an item is drawn in another way than each item beside it that doesn't say that it is selected: what isn't
    // can't be seen, nor can what has none beside it.
    const standsOut = e => {
        for (let top = e, up = 0; up < 5 && top.parentElement && top !== document.body; top = top.parentElement, up++) {
            const mates = [...top.parentElement.children].filter(n => n !== top && n.tagName === top.tagName).map(n => up ? [...n.querySelectorAll(e.tagName)].find(m => isShown(m) && clean(m.innerText || '')) : n)
                .filter(m => m && isShown(m) && clean(m.innerText || ''));
            if (!mates.length) continue;
            const say = m => { for (let n = m, at = 0; n && at <= up; n = n.parentElement, at++) if (selected(n)) return true; return false; };
            const plain = mates.filter(m => !say(m)), look = listLooks(e, top);
            return plain.length > 0 && plain.every(m => { let head = m; for (let at = 0; head.parentElement !== top.parentElement; at++) head = head.parentElement; return listLooks(m, head) !== look; });
        }
        return false;
    };
    // Other elements that say so are items too, as far as they are in the window, if another one beside them is as high
    // and does not say so.
    const findOtherItem = e => {
        const r = e.getBoundingClientRect(), c = clip(e, r, true);
        if (!c || !isShown(e) || c.height < r.height - 1 || c.top < 0 || c.bottom > high || c.height > 90 || !clean(e.innerText || '')) return null;
        if (getComputedStyle(e).cursor !== 'pointer' && !e.matches('[role=row], [role=treeitem], [aria-selected]')) return null;
        if (e.closest(ITEMS) || e.querySelector('a, button, li, tr, [role=tab], [role=option], [role=menuitem]') || !selected(e)) return null;
        const plain = n => n !== e && n.tagName === e.tagName && isShown(n) && !selected(n) && Math.abs(n.getBoundingClientRect().height - r.height) < 3;
        const left = Math.max(0, c.left), right = Math.min(wide, c.right), box = new DOMRect(left, c.top, right - left, c.height);
        return box.width > 0 && [...e.parentElement.children].some(plain) && isSeenAt(e, (left + right) / 2, (c.top + c.bottom) / 2) ? box : null;
    };
    const states = [];
    // A day of a calendar, in a row of days.
    const findDay = e => {
        const isDay = n => /^\d{1,2}$/.test(clean(n.innerText || '')), days = [...e.parentElement.children].filter(isDay);
        return e.matches('td, [role=gridcell]') && isDay(e) && days.length > 3 && !e.querySelector('a, button') && selected(e) && isSeen(e) ? e.getBoundingClientRect() : null;
    };
    for (const e of all('[aria-selected=true], [class*=elected], [class*=ctive], [class*=urrent], [class*=ressed], [class$=this]')) {
        const box = !e.matches(ITEMS) && (findOtherItem(e) || findDay(e));
        if (box && standsOut(e)) states.push({ kind: 'selected', tag: e.tagName, box: toBox(box), text: clean(e.innerText).slice(0, 80) });
    }
    // A segment or chip that is the label of a radio button or check box which isn't drawn itself.
    const isNear = (r, b) => b[0] < r.right * scale && b[2] > (r.left - 40) * scale && b[1] < r.bottom * scale && b[3] > r.top * scale;
    for (const e of all('input[type=radio]:checked:enabled, input[type=checkbox]:checked:enabled')) {
        const label = e.labels?.[0], r = label?.getBoundingClientRect();
        if (!label || !isSeen(label) || !clean(label.innerText || '') || r.height > 90 || controls.some(c => /check|radio|switch/.test(c.kind) && isNear(r, c.box))) continue;
        const mates = all(`input[type=${e.type}]`).filter(n => !n.checked && n.name && n.name === e.name && n.labels?.[0] && isShown(n.labels[0])).map(n => n.labels[0]);
        if (mates.length && mates.every(m => listLooks(m, m) !== listLooks(label, label))) states.push({ kind: 'selected', tag: 'LABEL', box: toBox(r), text: clean(label.innerText).slice(0, 80) });
    }
    for (const e of all(ITEMS)) {
        if (!isSeen(e) || !clean(e.innerText || e.value || e.placeholder || '') || e.getBoundingClientRect().height > 90) continue;
        if (e.querySelector('a, button, li, tr, [role=tab]') && e.tagName !== 'TR') continue;
        const on = selected(e) || (e.parentElement && e.parentElement.matches('li, .nav-item') && selected(e.parentElement));
        const kind = isOff(e) ? 'disabled' : on && standsOut(e) ? 'selected' : null;
        const mates = e.parentElement && (e.parentElement.matches('li, .nav-item') ? e.parentElement.parentElement : e.parentElement).children.length;
        if (kind && (kind === 'disabled' || mates > 1)) states.push({ kind, tag: e.tagName, ...seenBox(e) });
        else if (!kind) states.push({ kind: 'plain', tag: e.tagName, ...seenBox(e) });
    }

    const icons = [];
    for (const e of all('svg, i, img, [class*=icon], [class*=fa-], .caret, .material-icons, span.material-symbols-rounded')) {
        const r = e.getBoundingClientRect();
        if (r.width > 48 || r.height > 48 || r.width < 5 || r.height < 5 || !inWindow(r) || !isShown(e) || !isUnclipped(e, r)) continue;
        if (![0.2, 0.5, 0.8].some(part => isSeenAt(e, r.left + part * r.width, r.top + part * r.height))) continue;  // a badge may cover a part
        const text = clean(e.innerText || '');
        if (e.tagName !== 'svg' && e.tagName !== 'IMG' && [...text].some(c => !isPrivate(c)) && !/material/.test(e.className)) continue;
        icons.push(toBox(r));
    }
    const pictures = all('img, canvas, video, svg, picture').filter(e => { const r = e.getBoundingClientRect(); return isShown(e) && (r.width > 48 || r.height > 48) && r.bottom > 0 && r.top < high; }).map(e => toBox(e.getBoundingClientRect()));

    // Code: lines as they stand, with the number that an editor writes beside each.
    const code = [];
    const addCode = (lines, numbers) => { if (lines.length >= 3) code.push({ lines, numbers }); };
    const expandTabs = (text, size) => {
        let out = '';
        for (const letter of text) out += letter === '\t' ? ' '.repeat(size - out.length % size) : letter;
        return out;
    };
    // The numbers of the lines of an element of which something is cut off, or in letters that no font has.
    const findCutLines = e => {
        const cut = new Set(), range = document.createRange(), walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
        let line = 0;
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            for (const match of node.data.matchAll(/\n|[^\n]+/g)) {
                if (match[0] === '\n') { line += 1; continue; }
                range.setStart(node, match.index);
                range.setEnd(node, match.index + match[0].trimEnd().length);
                const isCut = r => r.width > 0 && (r.right > wide + 1 || !isUnclipped(node.parentElement, r));
                if ([...range.getClientRects()].some(isCut) || hasBoxes(match[0], node.parentElement)) cut.add(line);
            }
        }
        return cut;
    };
    for (const pre of all('pre')) {
        if (!isSeen(pre) || pre.closest('.monaco-editor, .CodeMirror, .ace_editor, .cm-editor')) continue;
        const style = getComputedStyle(pre);
        if (style.whiteSpace !== 'pre' || pre.querySelector('table')) continue;
        const size = /px/.test(style.tabSize) ? 8 : parseInt(style.tabSize), cut = findCutLines(pre);
        const told = pre.innerText.replace(/\n+$/, '').split('\n'), drawn = pre.textContent.replace(/\n+$/, '').split('\n');
        const lines = told.map(t => ({ text: expandTabs(t, size) }));
        if (lines.length >= 3) addCode(told.length === drawn.length ? lines.filter((_, at) => !cut.has(at)) : lines, false);
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
    solid.remove();
    return { words: told, unknown, controls, tables, headings, states, icons, pictures, code };
})()
