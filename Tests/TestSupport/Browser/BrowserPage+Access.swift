/// What a page owes to people who see, hear, point or type in other ways. Each check has a name and looks at the page as it is shown.
extension BrowserPage {
    /// The names of all checks.
    package static var accessChecks: [String] { checksOfAccess.map(\.name) }

    /// Sentences about what is wrong, each beginning with the name of its check.
    package func accessProblems() async throws -> [String] {
        let parts = Self.checksOfAccess.map { check in
            "try { for (const one of (() => { \(check.script) })()) found.push(\(Self.quoted(check.name)) + ': ' + one) } "
                + "catch (error) { found.push(\(Self.quoted(check.name)) + ' failed: ' + error) }"
        }
        return try await evaluate(
            "(() => { const found = []; \(Self.accessTools); \(parts.joined(separator: "\n")); return found })()",
            as: [String].self)
    }

    private static let accessTools = #"""
        const all = selector => [...document.querySelectorAll(selector)]
        const isShown = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
        const shown = selector => all(selector).filter(isShown)
        const say = element => `<${element.localName}${element.id ? '#' + element.id : ''}> “${(element.textContent || element.value || '').trim().slice(0, 40)}”`
        const named = element => {
            const ids = (element.getAttribute('aria-labelledby') || '').split(' ').filter(Boolean)
            const texts = ids.map(id => document.getElementById(id)?.textContent || '')
            return (element.getAttribute('aria-label') || texts.join(' ') || element.textContent || element.getAttribute('alt') || element.title || '').trim()
        }
        const bad = (elements, isGood) => elements.filter(element => !isGood(element)).map(say)
        const pixels = text => parseFloat(text) || 0
        const light = color => {
            const [r, g, b] = color.match(/[\d.]+/g).slice(0, 3).map(part => part / 255)
                .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
            return 0.2126 * r + 0.7152 * g + 0.0722 * b
        }
        const paper = element => {
            for (let at = element; at; at = at.parentElement) {
                const color = getComputedStyle(at).backgroundColor
                if (!/, 0\)$/.test(color)) return color
            }
            return 'rgb(255, 255, 255)'
        }
        const contrast = (one, two) => {
            const [a, b] = [light(one), light(two)]
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
        }
        """#

    private static let checksOfAccess: [(name: String, script: String)] = [
        ("the page says its language", "return document.documentElement.lang ? [] : ['no lang']"),
        (
            "the title begins with the heading",
            "const h1 = document.querySelector('h1'); return h1 && document.title.startsWith(h1.textContent.trim()) ? [] : [document.title]"
        ),
        ("there is one first heading", "return all('h1').length === 1 ? [] : [`${all('h1').length} h1`]"),
        (
            "headings leave out no level",
            "let last = 0; return shown('h1, h2, h3, h4, h5, h6').filter(h => { const level = Number(h.localName[1]); const jumps = level > last + 1; last = level; return jumps }).map(say)"
        ),
        ("headings have words", "return bad(all('h1, h2, h3, h4'), h => h.textContent.trim())"),
        ("there is one main part", "return all('main').length === 1 ? [] : [`${all('main').length} main`]"),
        (
            "there is one banner and one footer",
            "return all('body > header').length === 1 && all('body > footer').length === 1 ? [] : ['not one each']"
        ),
        ("navigations have names", "return bad(all('nav'), e => e.getAttribute('aria-label'))"),
        (
            "all text stands in a landmark",
            "return [...document.body.children].filter(e => isShown(e) && e.textContent.trim() && !/^(HEADER|MAIN|NAV|FOOTER|DIALOG)$/.test(e.tagName) && !e.classList.contains('skip')).map(say)"
        ),
        (
            "the first stop of the keyboard skips to the content",
            "const first = all('a[href], button, input:not([type=hidden])')[0]; const at = first?.getAttribute('href') || ''; const to = at.startsWith('#') && document.querySelector(at); return to && to.localName === 'main' && to.tabIndex === -1 ? [] : [say(first)]"
        ),
        (
            "an id is there once",
            "const seen = new Set(); return all('[id]').filter(e => { const twice = seen.has(e.id); seen.add(e.id); return twice }).map(say)"
        ),
        (
            "fields have labels",
            "return bad(all('input:not([type=hidden]), select, textarea'), e => [...(e.labels || [])].some(l => l.textContent.trim()) || e.getAttribute('aria-label'))"
        ),
        ("buttons have names", "return bad(all('button, [role=button]'), named)"),
        ("links have names", "return bad(all('a'), named)"),
        ("links lead somewhere", "return bad(all('a'), a => /^[/#]./.test(a.getAttribute('href') || ''))"),
        (
            "links say what they lead to",
            "return shown('a').filter(a => /^(here|click here|link|more|read more)$/i.test(named(a))).map(say)"
        ),
        (
            "links inside of this page find their place",
            "return bad(all('a[href^=\"#\"]'), a => document.querySelector(a.getAttribute('href')))"
        ),
        ("pictures have words", "return bad(all('img'), e => e.hasAttribute('alt'))"),
        (
            "drawings have a role and words",
            "return bad(all('svg'), e => e.getAttribute('role') === (e.querySelector('a') ? 'group' : 'img') && named(e))"
        ),
        ("frames have titles", "return bad(all('iframe'), e => e.title)"),
        (
            "tables have headings for their columns",
            "return bad(all('table'), t => t.querySelectorAll('thead th[scope=col]').length > 0 && [...t.querySelectorAll('thead th')].every(h => h.textContent.trim()))"
        ),
        ("rows have headings", "return bad(all('tbody tr'), r => r.querySelector('th[scope=row]'))"),
        (
            "rows have a cell for each column",
            "return bad(all('tbody tr'), r => r.children.length === r.closest('table').querySelectorAll('thead th').length)"
        ),
        ("lists hold items only", "return bad(all('ul, ol'), l => [...l.children].every(c => c.localName === 'li'))"),
        ("lists have items", "return bad(all('ul, ol'), l => l.children.length)"),
        (
            "pairs hold terms and values",
            "return bad(all('dl'), d => d.children.length && [...d.children].every(c => /^(DT|DD|DIV)$/.test(c.tagName)) && d.querySelectorAll('dt').length > 0)"
        ),
        (
            "the order of the keyboard is that of the page",
            "return all('[tabindex]').filter(e => e.tabIndex > 0).map(say)"
        ),
        (
            "what is named elsewhere is there",
            "return ['aria-labelledby', 'aria-describedby', 'aria-controls', 'for'].flatMap(name => all(`[${name}]`).filter(e => !e.getAttribute(name).split(' ').every(id => document.getElementById(id))).map(say))"
        ),
        (
            "roles are real ones",
            "return bad(all('[role]'), e => /^(table|row|rowgroup|cell|columnheader|rowheader|search|status|img|region|button|alert|note|group)$/.test(e.getAttribute('role')))"
        ),
        (
            "nothing hidden can be reached",
            "return all('[aria-hidden=true] a, [aria-hidden=true] button, [aria-hidden=true] input').map(say)"
        ),
        (
            "the page may be enlarged",
            "const meta = document.querySelector('meta[name=viewport]')?.content || ''; return /width=device-width/.test(meta) && !/user-scalable|maximum-scale/.test(meta) ? [] : [meta]"
        ),
        (
            "nothing moves the reader away or takes the keyboard",
            "return all('meta[http-equiv=refresh], [autofocus], marquee, blink').map(say)"
        ),
        ("times are readable by machines", "return bad(all('time'), t => !isNaN(new Date(t.dateTime)))"),
        (
            "the navigation says where the reader is",
            "const here = all('nav [aria-current=page]').length; return !document.querySelector('nav') || here === 1 || document.title.match(/allowed|nothing here|wrong|did not work|cannot/i) ? [] : [`${here} are current`]"
        ),
        ("what changes by itself is told", "return bad(all('#live-state'), e => e.getAttribute('role') === 'status')"),
        ("forms have a button", "return bad(all('form'), f => f.querySelector('button'))"),
        (
            "forms say how they are sent",
            "return bad(all('form'), f => /^(get|post|dialog)$/.test(f.getAttribute('method') || ''))"
        ),
        (
            "secrets and names can be filled in by a program",
            "return bad(all('input[type=password], input[name=name]'), e => e.autocomplete && e.autocomplete !== 'off' || e.type !== 'password')"
        ),
        ("dialogs have names", "return bad(all('dialog'), named)"),
        (
            "nothing that is pressed stands in another such thing",
            "return all('a a, a button, button a, button button, label a').map(say)"
        ),
        (
            "text is large enough",
            "const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); const small = new Set(); while (walker.nextNode()) { const e = walker.currentNode.parentElement; if (!walker.currentNode.data.trim() || !isShown(e) || e.closest('svg title')) continue; const svg = e.closest('svg'); const scale = svg ? svg.getBoundingClientRect().width / (svg.viewBox.baseVal.width || 1) : 1; if (pixels(getComputedStyle(e).fontSize) * scale < (svg ? 9 : 12)) small.add(e) } return [...small].map(e => say(e) + ' ' + getComputedStyle(e).fontSize)"
        ),
        (
            "lines have air",
            "return bad(shown('main p, main dd, main td'), e => pixels(getComputedStyle(e).lineHeight) >= 1.3 * pixels(getComputedStyle(e).fontSize))"
        ),
        (
            "edges of fields and buttons are seen",
            "return shown('main input:not([type=hidden]), main select, main button').filter(e => contrast(getComputedStyle(e).borderTopColor, paper(e.parentElement)) < 3).map(say)"
        ),
        (
            "links in text differ by more than colour",
            "return shown('main p a, main td a, main th a, main dd a, main li a').filter(a => getComputedStyle(a).textDecorationLine === 'none' && pixels(getComputedStyle(a).borderTopWidth) === 0).map(say)"
        ),
        (
            "the focus is seen",
            "const stops = shown('a[href], button, input:not([type=hidden]), select, pre[tabindex]').slice(0, 200); const unseen = stops.filter(e => { e.focus({ preventScroll: true }); const style = getComputedStyle(e); return document.activeElement !== e || style.outlineStyle === 'none' || pixels(style.outlineWidth) < 2 }); document.activeElement.blur(); return unseen.map(say)"
        ),
        (
            "nothing covers what has the focus",
            "return shown('header').filter(e => ['fixed', 'sticky'].includes(getComputedStyle(e).position) && !getComputedStyle(document.documentElement).scrollPaddingTop.match(/[1-9]/)).map(say)"
        ),
        (
            "what scrolls can be reached by the keyboard",
            "return shown('main *').filter(e => /auto|scroll/.test(getComputedStyle(e).overflowY + getComputedStyle(e).overflowX) && (e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1) && e.tabIndex < 0).map(say)"
        ),
    ]
}

/// A person's hands.
extension BrowserPage {
    /// Presses a key that writes one character, or Enter, Escape or Tab.
    package func press(_ key: String) async throws {
        let known = ["Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, "")]
        let (code, text) = known[key] ?? (Int(key.uppercased().unicodeScalars.first?.value ?? 0), key)
        for type in ["keyDown", "keyUp"] {
            var event: [String: any Sendable] = [
                "type": type, "key": key, "windowsVirtualKeyCode": code,
                "code": known[key] == nil ? "Key\(key.uppercased())" : key,
            ]
            if type == "keyDown", !text.isEmpty { event["text"] = text }
            try await send("Input.dispatchKeyEvent", event)
        }
    }

    /// Writes into a field, or chooses what a list offers.
    package func fill(_ selector: String, _ text: String) async throws {
        _ = try await evaluate(
            """
            (() => {
                const field = document.querySelector(\(Self.quoted(selector)))
                if (!field) throw new Error('nothing matches ' + \(Self.quoted(selector)))
                field.value = \(Self.quoted(text))
                field.dispatchEvent(new Event('input', { bubbles: true }))
                if (field.value !== \(Self.quoted(text))) throw new Error(\(Self.quoted(selector)) + ' does not take ' + \(Self.quoted(text)))
                return true
            })()
            """, as: Bool.self)
    }
}
