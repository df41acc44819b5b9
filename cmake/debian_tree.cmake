# Run by CPack on the tree that becomes a .deb: what Debian has in other places than everybody else.
set(tree ${CPACK_TEMPORARY_DIRECTORY}/usr)
file(MAKE_DIRECTORY ${tree}/share/zsh/vendor-completions)
file(RENAME ${tree}/share/zsh/site-functions/_transformer3d
  ${tree}/share/zsh/vendor-completions/_transformer3d)
file(REMOVE_RECURSE ${tree}/share/zsh/site-functions)
file(RENAME ${tree}/share/doc/transformer3d/LICENSE ${tree}/share/doc/transformer3d/copyright)
execute_process(COMMAND gzip -9n ${tree}/share/man/man1/transformer3d.1 COMMAND_ERROR_IS_FATAL ANY)
