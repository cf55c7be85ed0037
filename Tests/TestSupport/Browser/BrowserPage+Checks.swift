/// What every page of ours keeps to, computed where it is shown.
extension BrowserPage {
    /// Sentences about what is wrong; none when the page is as it should be.
    package func problems(
        smallestTarget: Int = 44, leastContrast: Double = 4.5, largestShift: Double = 0
    ) async throws -> [String] {
        var problems = try await evaluate(
            "(\(Self.checks))(\(width), \(smallestTarget), \(leastContrast), \(largestShift == 0))", as: [String].self)
        let shift = try await layoutShift()
        // While pictures are taken, the window may still be changing its size back as the next page comes.
        if shift > (Browser.screenshots == nil ? largestShift : max(largestShift, 0.1)) {
            let moved = try await evaluate("window.millraceShifts.moved.join(', ')", as: String.self)
            problems.append("the layout shifted by \(shift): \(moved)")
        }
        return problems + errors.map { "the console got an error: \($0)" }
    }

    /// Requests for anything that this origin did not give.
    package func requests(outside origin: String) -> [String] {
        requests.filter { !$0.hasPrefix(origin + "/") && !$0.hasPrefix("data:") && !$0.hasPrefix("about:") }
    }

    /// How much moved after it was first shown, two frames from now. A page without scripts is not told of its frames: there it is 0.
    package func layoutShift() async throws -> Double {
        guard hasScript else { return 0 }
        return try await evaluate(
            """
            new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
                const recorder = window.millraceShifts
                recorder.add(recorder.observer.takeRecords())
                done(recorder.sum)
            })))
            """, as: Double.self)
    }

    /// Runs before each document's own scripts. What moves after the first live text is no shift: the reader waits for it.
    static let shiftRecorder = """
        window.millraceShifts = { sum: 0, moved: [], isLive: false }
        window.millraceShifts.add = entries => {
            const place = box => `(${[box.x, box.y, box.width, box.height].map(Math.round)})`
            const name = ({ node, previousRect, currentRect }) =>
                `${node?.nodeName ?? 'a removed element'} ${node?.className ?? `“${node?.data?.slice(0, 40) ?? ''}”`} ` +
                `from ${place(previousRect)} to ${place(currentRect)} after ${Math.round(performance.now())} ms`
            for (const one of entries) {
                const recorder = window.millraceShifts
                if (recorder.isLive) continue
                recorder.sum += one.value
                recorder.moved.push(...one.sources.map(name))
            }
        }
        window.millraceShifts.observer = new PerformanceObserver(list => window.millraceShifts.add(list.getEntries()))
        window.millraceShifts.observer.observe({ type: 'layout-shift', buffered: true })
        addEventListener('DOMContentLoaded', () => new MutationObserver(all => {
            const recorder = window.millraceShifts
            if (recorder.isLive || !all.some(one => one.target.closest?.('[data-live]'))) return
            recorder.add(recorder.observer.takeRecords())
            recorder.isLive = true
        }).observe(document, { subtree: true, childList: true, characterData: true }))
        """

    private static let checks = """
        (width, smallest, least, isStill) => {
            const problems = []
            // What would move a page that is shown while it is still read: its own length, and a box in a line that is empty at first.
            if (isStill && getComputedStyle(document.documentElement).scrollbarGutter !== 'stable')
                problems.push('a scroll bar that comes later moves the page')
            for (const element of isStill ? document.querySelectorAll('body *') : []) {
                const style = getComputedStyle(element), before = element.previousSibling
                if (!/^inline-(block|flex|grid)$/.test(style.display) || style.verticalAlign !== 'baseline') continue
                if (!before || !/^(block|inline)/.test(getComputedStyle(element.parentElement).display)) continue
                const range = document.createRange()
                range.selectNode(before)
                const [above, box] = [range.getBoundingClientRect(), element.getBoundingClientRect()]
                if (above.height > 0 && above.bottom > box.top + 1)
                    problems.push(`its text comes after its box: <${element.localName}> “${element.innerText.slice(0, 40)}”`)
            }
            const scrolled = document.scrollingElement.scrollWidth
            if (scrolled > width) problems.push(`it scrolls sideways: ${scrolled} of ${width} pixels`)
            const name = element => `<${element.localName}> “${(element.innerText || element.value || '').trim().slice(0, 40)}”`
            const isShown = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
            const targets = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [role=button]'
            for (const element of document.querySelectorAll(targets)) {
                if (!isShown(element)) continue
                const box = element.getBoundingClientRect()
                if (box.width < smallest || box.height < smallest)
                    problems.push(`${name(element)} is ${box.width} by ${box.height} pixels`)
            }
            const numbers = color => {
                const found = color.match(/[\\d.]+/g).map(Number)
                return found.length > 3 ? found : [...found, 1]
            }
            const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1)
            const canvas = () => {
                const probe = document.createElement('i')
                probe.style.backgroundColor = 'Canvas'
                document.body.append(probe)
                const color = numbers(getComputedStyle(probe).backgroundColor)
                probe.remove()
                return color
            }
            const background = element => {
                if (!element) return canvas()
                const own = numbers(getComputedStyle(element).backgroundColor)
                return own[3] === 1 ? own : over(own, background(element.parentElement))
            }
            const light = color => {
                const [r, g, b] = color.slice(0, 3).map(part => part / 255)
                    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
                return 0.2126 * r + 0.7152 * g + 0.0722 * b
            }
            const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
            while (texts.nextNode()) {
                const element = texts.currentNode.parentElement
                if (!texts.currentNode.data.trim() || !isShown(element)) continue
                const below = background(element)
                const [a, b] = [light(over(numbers(getComputedStyle(element).color), below)), light(below)]
                const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
                if (contrast < least) problems.push(`${name(element)} has a contrast of ${contrast.toFixed(2)}`)
            }
            // The word of the live line changes while the page is read: each one leaves the title and what follows in their places.
            const live = document.getElementById('live-state'), title = document.querySelector('.title')
            if (live && title) {
                const was = live.textContent
                const heights = ['live', 'paused', 'no answer', 'connecting', 'reconnecting'].map(word => {
                    live.textContent = word
                    return Math.round(title.getBoundingClientRect().height)
                })
                live.textContent = was
                if (new Set(heights).size > 1) problems.push(`the live line moves the page: ${heights}`)
            }
            return problems
        }
        """
}
