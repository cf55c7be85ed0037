-- What an attachment is, by its name and by its type; AttachmentKind in Mail has the same lists and the same rule, and a test compares the
-- two. A file that runs when it is opened is refused under every name.

create or replace function millrace.mail_attachment_endings() returns text[]
language sql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
    select array[
        'ade', 'adp', 'apk', 'app', 'appcontent-ms', 'appimage', 'appinstaller', 'application', 'appref-ms', 'appx', 'appxbundle', 'asp', 'aspx',
        'asx', 'bas', 'bash', 'bat', 'bin', 'cab', 'cer', 'cgi', 'chm', 'class', 'cmd', 'cnt', 'com', 'command', 'cpl', 'crt', 'crx', 'csh', 'deb',
        'der', 'desktop', 'diagcab', 'dll', 'dmg', 'docm', 'dotm', 'dylib', 'elf', 'ex', 'ex_', 'exe', 'fileloc', 'fish', 'fxp', 'gadget', 'grp',
        'hlp', 'hpj', 'hta', 'htc', 'htm', 'html', 'htx', 'img', 'inetloc', 'inf', 'ins', 'ipa', 'iqy', 'iso', 'isp', 'its', 'jar', 'jnlp', 'js',
        'jse', 'jsp', 'ksh', 'lib', 'library-ms', 'lnk', 'mad', 'maf', 'mag', 'mam', 'maq', 'mar', 'mas', 'mat', 'mau', 'mav', 'maw', 'mcf', 'mda',
        'mdb', 'mde', 'mdt', 'mdw', 'mdz', 'mht', 'mhtml', 'mjs', 'msc', 'msh', 'msh1', 'msh2', 'mshxml', 'msi', 'msix', 'msixbundle', 'msp', 'mst',
        'msu', 'nsh', 'one', 'ops', 'oqy', 'osd', 'ova', 'partial', 'pcd', 'php', 'phtml', 'pif', 'pkg', 'pl', 'plg', 'potm', 'ppa', 'ppam', 'ppsm',
        'pptm', 'prf', 'prg', 'ps1', 'ps1xml', 'ps2', 'ps2xml', 'psc1', 'psc2', 'psd1', 'psdm1', 'psm1', 'pssc', 'pst', 'py', 'pyc', 'pyo', 'pyw',
        'pyz', 'rdp', 'reg', 'rpm', 'run', 'scf', 'scr', 'sct', 'settingcontent-ms', 'sh', 'shb', 'shs', 'shtm', 'shtml', 'sldm', 'slk', 'so', 'svg',
        'svgz', 'swf', 'sys', 'terminal', 'theme', 'tmp', 'udl', 'url', 'vb', 'vbe', 'vbp', 'vbs', 'vhd', 'vhdx', 'vxd', 'war', 'webloc', 'webpnp',
        'website', 'wim', 'wll', 'workflow', 'ws', 'wsb', 'wsc', 'wsf', 'wsh', 'xbap', 'xht', 'xhtml', 'xla', 'xlam', 'xll', 'xlsb', 'xlsm', 'xltm',
        'xnk', 'xpi', 'zsh']
$$;

create or replace function millrace.mail_attachment_types() returns text[]
language sql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
    select array[
        'application/bat', 'application/ecmascript', 'application/exe', 'application/hta', 'application/internet-shortcut',
        'application/java-archive', 'application/javascript', 'application/mathml+xml', 'application/vnd.android.package-archive',
        'application/vnd.debian.binary-package', 'application/vnd.microsoft.portable-executable', 'application/vnd.ms-htmlhelp',
        'application/x-apple-diskimage', 'application/x-bat', 'application/x-csh', 'application/x-desktop', 'application/x-dosexec',
        'application/x-elf', 'application/x-exe', 'application/x-executable', 'application/x-httpd-php', 'application/x-iso9660-image',
        'application/x-java-archive', 'application/x-java-jnlp-file', 'application/x-javascript', 'application/x-mach-binary',
        'application/x-mimearchive', 'application/x-ms-application', 'application/x-ms-installer', 'application/x-ms-shortcut',
        'application/x-msdos-program', 'application/x-msdownload', 'application/x-msi', 'application/x-mswinurl', 'application/x-perl',
        'application/x-powershell', 'application/x-python-code', 'application/x-rpm', 'application/x-sh', 'application/x-sharedlib',
        'application/x-shellscript', 'application/x-shockwave-flash', 'application/x-vbs', 'application/x-xpinstall', 'application/xhtml+xml',
        'image/svg+xml', 'text/ecmascript', 'text/html', 'text/javascript', 'text/vbscript', 'text/x-sh', 'text/x-shellscript']
$$;

create or replace function millrace.mail_attachment_check(filename text, content_type text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    advice text := 'Send a link to it instead.';
    -- After the dot, or after a character that Unicode maps to a dot or to something with a dot in it.
    ending text := substring(filename from E'[.\\u2024-\\u2026\\u2488-\\u249b\\u3002\\u33c2\\u33d8\\ufe19\\ufe30\\ufe52\\uff0e\\uff61\\U0001f100]'
        || E'([^.\\u2024-\\u2026\\u2488-\\u249b\\u3002\\u33c2\\u33d8\\ufe19\\ufe30\\ufe52\\uff0e\\uff61\\U0001f100]*)$');
begin
    if filename ~ E'[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\U000e0000-\\U000e0fff]'
    then
        perform millrace.refuse('a filename has a character that reverses or hides text', 'attachments', 'Give for example "bill.pdf".');
    end if;
    if filename ~ '^ |[ .]$' then
        perform millrace.refuse('a filename begins or ends with a space, or ends with a dot', 'attachments', 'Give for example "bill.pdf".');
    end if;
    if ending ~ '[^ -~]' then
        perform millrace.refuse('a filename has an extension outside ASCII, so its kind cannot be checked', 'attachments',
            'Give for example "bill.pdf".');
    end if;
    ending := regexp_replace(lower(ending collate "C"), '[^a-z0-9_-]', '', 'g');
    if ending = any (millrace.mail_attachment_endings()) then
        perform millrace.refuse(format('an attachment is of a kind that runs when it is opened (.%s)', ending), 'attachments', advice);
    end if;
    if lower(content_type collate "C") = any (millrace.mail_attachment_types()) then
        perform millrace.refuse(format('an attachment is of a kind that runs when it is opened (%s)', lower(content_type collate "C")), 'attachments', advice);
    end if;
end $$;
