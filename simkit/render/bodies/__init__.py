"""View of rigid bodies: from the side, or shaded in perspective; its parts serve the view of particles, too."""
